package page

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	loginPath  = "/login"
	logoutPath = "/logout"
	cookieName = "diagnose-session"
	// sessionTime is how long a login lasts.
	sessionTime = 12 * time.Hour
	// LeastToken is the length of the shortest token that is taken, in bytes.
	LeastToken = 16
	// MostToken is that of the longest.
	MostToken = 4096
	// loginPause slows down who tries tokens.
	loginPause = 500 * time.Millisecond
)

// session decides who may read, and which forms are the server's own.
//
// The cookie of a reader is a time of expiry with its message authentication code (RFC 2104) under
// a key made of the token: nothing is stored, and another token ends all sessions.
type session struct {
	token []byte
	key   []byte
	now   func() time.Time
}

func newSession(token []byte) (*session, error) {
	token = []byte(strings.TrimSpace(string(token)))
	s := &session{token: token, now: time.Now}
	if len(token) == 0 {
		// Forms are signed all the same: what made them need not be a browser that says their origin.
		s.key = make([]byte, sha256.Size)
		rand.Read(s.key) // never fails
		return s, nil
	}
	if len(token) < LeastToken || len(token) > MostToken {
		return nil, fmt.Errorf("page: the token has %d bytes; it must have %d to %d", len(token), LeastToken, MostToken)
	}
	for _, c := range token {
		if c <= ' ' || c > '~' {
			return nil, errors.New("page: the token has spaces or characters that a header cannot have")
		}
	}
	s.key = mac(token, "key of sessions")
	return s, nil
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// open reports whether no token is needed.
func (s *session) open() bool { return len(s.token) == 0 }

// isToken compares in a time that does not depend on where the texts differ, nor on their lengths.
func (s *session) isToken(text string) bool {
	a, b := sha256.Sum256([]byte(text)), sha256.Sum256(s.token)
	return !s.open() && subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// bearer reports whether a request has the token in its header (RFC 6750, 2.1). No browser sends
// that on behalf of a page of another site.
func (s *session) bearer(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && s.isToken(strings.TrimSpace(token))
}

// allows reports whether a request may be answered.
func (s *session) allows(r *http.Request) bool {
	if s.open() || s.bearer(r) {
		return true
	}
	c, err := r.Cookie(cookieName)
	return err == nil && s.valid(c.Value)
}

func (s *session) value(until time.Time) string {
	text := strconv.FormatInt(until.Unix(), 10)
	return text + "." + hex.EncodeToString(mac(s.key, "session "+text))
}

func (s *session) valid(value string) bool {
	text, _, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return false
	}
	until := time.Unix(seconds, 0)
	return subtle.ConstantTimeCompare([]byte(value), []byte(s.value(until))) == 1 && s.now().Before(until)
}

// form is the hidden field of this session's forms.
func (s *session) form(r *http.Request) string {
	text := "form"
	if c, err := r.Cookie(cookieName); err == nil && !s.open() {
		text += " " + c.Value
	}
	return hex.EncodeToString(mac(s.key, text))
}

// isForm reports whether a change was sent by a form of this session, or with the token itself.
func (s *session) isForm(r *http.Request) bool {
	return s.bearer(r) || subtle.ConstantTimeCompare([]byte(r.PostFormValue(formField)), []byte(s.form(r))) == 1
}

// formField is the name of the hidden field.
const formField = "form"

func (s *session) cookie(r *http.Request, value string, age time.Duration) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(age.Seconds()),
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"}
}

func (s *Server) loginPage(q *request) error { return s.showLogin(q, http.StatusOK, "") }

func (s *Server) showLogin(q *request, status int, complaint string) error {
	if s.session.open() {
		http.Redirect(q.w, q.Request, "/", http.StatusSeeOther)
		return nil
	}
	return s.render(q, status, "login", struct {
		frame
		Complaint, Next string
	}{s.frame(q, "Log in", ""), complaint, localPath(q.FormValue(nextField))})
}

// nextField is the page that a reader wanted before the login.
const nextField = "next"

// localPath returns an address of this server, "/" for any other.
func localPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, "\\\r\n") || len(text) > longestParameter {
		return "/"
	}
	return text
}

func (s *Server) login(q *request) error {
	select {
	case s.logins <- struct{}{}:
		defer func() { <-s.logins }()
	default:
		return &statusError{http.StatusTooManyRequests, "too many logins at once"}
	}
	if !s.session.isToken(strings.TrimSpace(q.PostFormValue("token"))) {
		select {
		case <-time.After(loginPause):
		case <-q.Context().Done():
		}
		return s.showLogin(q, http.StatusForbidden, "That is not the token.")
	}
	http.SetCookie(q.w, s.session.cookie(q.Request, s.session.value(s.session.now().Add(sessionTime)), sessionTime))
	http.Redirect(q.w, q.Request, localPath(q.PostFormValue(nextField)), http.StatusSeeOther)
	return nil
}

func (s *Server) logout(q *request) error {
	if !s.session.isForm(q.Request) {
		return &statusError{http.StatusForbidden, "the form is not of this session; load the page again"}
	}
	http.SetCookie(q.w, s.session.cookie(q.Request, "", -time.Second))
	http.Redirect(q.w, q.Request, loginPath, http.StatusSeeOther)
	return nil
}
