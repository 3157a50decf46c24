package page

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

const testToken = "a-token-of-a-team-0123456789"

// ask sends a request to a handler.
func ask(s http.Handler, method, path string, form url.Values, edit func(*http.Request)) *httptest.ResponseRecorder {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequest(method, "http://127.0.0.1:8420"+path, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// A name that leads here by a stranger's domain is refused; this machine's names, addresses and
// those of the options are not.
func TestHosts(t *testing.T) {
	s, err := New(Options{Corpus: week(t), Hosts: []string{"Failures.example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"127.0.0.1:8420": 200, "[::1]:8420": 200, "localhost": 200, "failures.example.org:443": 200, "failures.example.org.": 200, "10.1.2.3": 200,
		"evil.example.org": 421, "localhost.evil.example.org": 421, "": 421, "127.0.0.1.evil.example": 421} {
		if w := ask(s, "GET", "/tests", nil, func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("%q: status %d, want %d", host, w.Code, want)
		}
	}
}

// Without a token nothing is shown, not even that a cause exists. The token is taken from the
// header, and from the form of the login, which makes a session.
func TestToken(t *testing.T) {
	s := served(t, week(t), testToken)
	for _, path := range append(allPages, "/metrics", "/nothing", "/failure/"+digest(1)+"/archive", "/cause/"+digest(0xc1)+"/report") {
		w := ask(s, "GET", path, nil, nil)
		if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "server") {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
		w = ask(s, "GET", path, nil, func(r *http.Request) { r.Header.Set("Accept", "text/html") })
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != loginPath+"?next="+url.QueryEscape(path) {
			t.Errorf("%s: status %d, to %s", path, w.Code, to)
		}
	}
	for token, want := range map[string]int{"Bearer " + testToken: 200, "bearer " + testToken: 200, "Bearer " + testToken + "x": 401, "Bearer ": 401, testToken: 401, "Basic " + testToken: 401} {
		if w := ask(s, "GET", "/", nil, func(r *http.Request) { r.Header.Set("Authorization", token) }); w.Code != want {
			t.Errorf("%s: status %d, want %d", token, w.Code, want)
		}
	}
	if w := ask(s, "POST", loginPath, url.Values{"token": {"wrong"}}, nil); w.Code != http.StatusForbidden || len(w.Result().Cookies()) != 0 {
		t.Errorf("a wrong token: status %d", w.Code)
	}
	for next, want := range map[string]string{"/tests": "/tests", "//evil.example.org": "/", "https://evil.example.org": "/", `/\evil.example.org`: "/", "javascript:alert(1)": "/"} {
		w := ask(s, "POST", loginPath, url.Values{"token": {testToken}, "next": {next}}, nil)
		cookies := w.Result().Cookies()
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != want || len(cookies) != 1 {
			t.Fatalf("%s: status %d, to %s, %v", next, w.Code, w.Header().Get("Location"), cookies)
		}
		c := cookies[0]
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, testToken) {
			t.Errorf("%+v", c)
		}
		with := func(value string) int {
			return ask(s, "GET", "/", nil, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: value}) }).Code
		}
		if with(c.Value) != 200 || with(c.Value+"0") == 200 || with("9"+c.Value) == 200 || with("") == 200 || with(".") == 200 {
			t.Error("the session is not taken, or another one is")
		}
		s.session.now = func() time.Time { return time.Now().Add(sessionTime + time.Minute) }
		if with(c.Value) == 200 {
			t.Error("the session does not end")
		}
		s.session.now = time.Now
	}
	for _, token := range []string{"short", strings.Repeat("x", MostToken+1), "a token with spaces in it"} {
		if _, err := New(Options{Corpus: s.opts.Corpus, Token: []byte(token)}); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%.20s: %v", token, err)
		}
	}
}

// Labels are changed by the forms of this server's own pages, and by programs with the token.
func TestLabelChanges(t *testing.T) {
	for _, token := range []string{"", testToken} {
		c := week(t)
		s := served(t, c, token)
		var cookie *http.Cookie
		if token != "" {
			cookie = ask(s, "POST", loginPath, url.Values{"token": {token}}, nil).Result().Cookies()[0]
		}
		session := func(r *http.Request) {
			if cookie != nil {
				r.AddCookie(cookie)
			}
		}
		path := "/failure/" + digest(1)
		page := ask(s, "GET", path, nil, session).Body.String()
		_, rest, _ := strings.Cut(page, `name="form" value="`)
		form, _, _ := strings.Cut(rest, `"`)
		change := func(form, key, value, action string, edit func(*http.Request)) int {
			return ask(s, "POST", path+"/labels", url.Values{"form": {form}, "key": {key}, "value": {value}, "action": {action}}, func(r *http.Request) {
				session(r)
				if edit != nil {
					edit(r)
				}
			}).Code
		}
		label := func(key string) string {
			e, err := c.Find(t.Context(), digest(1))
			if err != nil {
				t.Fatal(err)
			}
			return e.Labels[key]
		}
		for name, x := range map[string]struct {
			form string
			edit func(*http.Request)
		}{
			"no form":      {"", nil},
			"another form": {strings.Repeat("0", 64), nil},
			"cross-site":   {form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
			"same-site":    {form, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }},
			"an origin":    {form, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example.org") }},
			"null origin":  {form, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		} {
			if status := change(x.form, "ticket", "1", "set", x.edit); status != http.StatusForbidden || label("ticket") != "" {
				t.Errorf("%s: status %d, label %q", name, status, label("ticket"))
			}
		}
		own := func(r *http.Request) {
			r.Header.Set("Origin", "http://127.0.0.1:8420")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		}
		if status := change(form, "ticket", hostile[:20], "set", own); status != http.StatusSeeOther || label("ticket") != hostile[:20] {
			t.Errorf("status %d, label %q", status, label("ticket"))
		}
		if page := ask(s, "GET", path, nil, session).Body.String(); !strings.Contains(page, "ticket") || strings.Contains(page, hostile[:20]) {
			t.Error("the page has not the new label, or as markup")
		}
		if status := change(form, "a b", "1", "set", own); status != http.StatusBadRequest {
			t.Errorf("no label: status %d", status)
		}
		if status := change(form, "ticket", "", "remove", own); status != http.StatusSeeOther || label("ticket") != "" {
			t.Errorf("status %d, label %q", status, label("ticket"))
		}
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			if w := ask(s, method, path+"/labels", nil, session); w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound {
				t.Errorf("%s: status %d", method, w.Code)
			}
		}
		if token == "" {
			continue
		}
		bearer := func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
		cookie = nil
		if status := change("", "ticket", "2", "set", bearer); status != http.StatusSeeOther || label("ticket") != "2" {
			t.Errorf("a program: status %d, label %q", status, label("ticket"))
		}
	}
}

// No part of a request becomes a path, and wrong ones are refused.
func TestWrongRequests(t *testing.T) {
	s := served(t, week(t), "")
	for path, want := range map[string]int{
		"/cause/..%2f..%2fcorpus.db": 404, "/cause/" + digest(0xff): 404, "/cause/c1": 404, "/failure/..%2f..%2fcorpus.db/archive": 404, "/failure/%00/report": 404,
		"/entries": 404, "/corpus.db": 404, "/causes?from=yesterday": 400, "/causes?page=0": 400, "/causes?page=1e9": 400, "/causes?state=odd": 400, "/causes?label=x": 400,
		"/failures?program=" + strings.Repeat("x", 5000): 400, "/failures?program=%ff": 400, "/search?q=" + strings.Repeat("a+", 20): 400, "/test?name=none": 404,
		"/failures?from=9999-01-01": 400, "/failures?from=1970-01-01&to=9998-12-31": 200, "/causes?from=2026-03-10&to=2026-03-01": 200, "/failure/" + digest(35) + "/report": 400,
	} {
		if w := ask(s, "GET", path, nil, nil); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
}

// The header of every answer keeps other pages out, and a report in an origin of its own.
func TestPolicy(t *testing.T) {
	s := served(t, week(t), "")
	for _, path := range append(allPages, "/nothing", "/metrics") {
		h := ask(s, "GET", path, nil, nil).Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", path, h)
		}
	}
	w := ask(s, "GET", "/cause/"+digest(0xc1)+"/report", nil, nil)
	if policy := w.Header().Get("Content-Security-Policy"); w.Code != 200 || policy != reportPolicy || !strings.Contains(w.Body.String(), "script-src &#39;sha256-") {
		t.Errorf("status %d, %s", w.Code, policy)
	}
}

// The server ends with its context, and lets a running answer end.
func TestServe(t *testing.T) {
	s := served(t, week(t), "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, "", "") }()
	answer, err := http.Get(fmt.Sprintf("http://%s/", l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != 200 {
		t.Errorf("status %d, %v", answer.StatusCode, err)
	}
	answer.Body.Close()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

// More requests than the server answers at once are sent away.
func TestTooMany(t *testing.T) {
	s := served(t, week(t), "")
	for range mostRequests {
		s.requests <- struct{}{}
	}
	if w := ask(s, "GET", "/", nil, nil); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d", w.Code)
	}
}

// FuzzRequest: no request makes the server panic, or answer with an error of its own.
func FuzzRequest(f *testing.F) {
	for _, path := range allPages {
		f.Add(path)
	}
	s := served(f, week(f), "")
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8420/", nil)
		r.URL.Path, r.URL.RawPath, r.URL.RawQuery = u.Path, u.RawPath, u.RawQuery
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%q: status %d: %s", path, w.Code, w.Body)
		}
	})
}
