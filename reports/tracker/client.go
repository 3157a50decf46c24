package tracker

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"diagnose/reports"
)

// The bounds of requests.
const (
	// requestTime bounds one request, with its answer.
	requestTime = 30 * time.Second
	// waitBudget bounds all waits of a night, for trackers that recover slowly or ask the client to
	// wait.
	waitBudget = 10 * time.Minute
	// mostTries bounds the tries of one request.
	mostTries = 5
	// mostAnswer bounds the bytes that are read of an answer.
	mostAnswer = 32 << 20
	// mostMessage bounds the text that is shown of an error.
	mostMessage = 300
	// writePause is the pause between requests that change something. GitHub asks for a second.
	writePause = time.Second
	// limitWait is the pause after a tracker refused a request as one too many and did not say how
	// long to wait. GitHub asks for a minute.
	limitWait = time.Minute
	// firstWait is the first pause after a failure. Each later one is twice as long.
	firstWait = time.Second
)

// client talks to one tracker's API.
type client struct {
	name   string
	base   *url.URL
	secret Secret
	http   *http.Client
	// header is sent with each request. It contains the token.
	header http.Header
	// message extracts the text of an error answer.
	message func(body []byte) (text string, code int)
	// inOK says that an answer with status 200 may be an error as well.
	inOK bool
	// secrets are texts, in addition to the token, that no error may show.
	secrets []string
	// sleep waits, rest is the time left for waits, and clock returns the time.
	sleep func(ctx context.Context, d time.Duration) error
	rest  time.Duration
	clock func() time.Time
	wrote bool
}

func newClient(name string, base *url.URL, token Secret) *client {
	c := &client{name: name, base: base, secret: token, header: http.Header{}, sleep: sleep, rest: waitBudget, clock: time.Now}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = requestTime
	transport.MaxResponseHeaderBytes = 1 << 20
	c.http = &http.Client{Transport: transport, Timeout: requestTime, CheckRedirect: sameHost}
	c.header.Set("Accept", "application/json")
	c.header.Set("User-Agent", "diagnose")
	c.message = func([]byte) (string, int) { return "", 0 }
	return c
}

// redirectError says why a redirection is not followed.
type redirectError string

func (e redirectError) Error() string { return string(e) }

// sameHost follows no redirection that would send the token to another host, nor one that would
// turn a request that changes something into one that reads.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host:
		return redirectError("it redirects to another host, which is not followed")
	case req.Method != first.Method:
		return redirectError("it redirects a request that changes something")
	case len(via) > 3:
		return redirectError("it redirects on and on")
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// do makes a request and decodes the answer's JSON into out, unless out is nil. A failed request is
// tried again if it only reads, or if it sets values that a second try would set again. A request
// that creates something is tried again only if it cannot have succeeded, or if its receiver
// recognises it.
func (c *client) do(ctx context.Context, r request, out any) (http.Header, error) {
	text := r.raw
	if r.body != nil {
		var err error
		if text, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
		r.kind = "application/json"
	}
	if r.changes() && c.wrote {
		if err := c.sleep(ctx, writePause); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		header, err := c.once(ctx, &r, text, out)
		c.wrote = c.wrote || r.changes()
		if err == nil {
			return header, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		again := kindOf(err) == Down && (r.again || !(unsure(err) && r.method == http.MethodPost))
		if !again || try == mostTries {
			return nil, err
		}
		if err := c.pause(ctx, err, try); err != nil {
			return nil, err
		}
	}
}

// pause waits before the next try, or returns the error if there is no time.
func (c *client) pause(ctx context.Context, err error, try int) error {
	wait := firstWait << (try - 1)
	wait = wait/2 + rand.N(wait/2+1)
	var e *Error
	if errors.As(err, &e) && !e.Until.IsZero() {
		if left := e.Until.Sub(c.clock()); left > 0 {
			wait = left + rand.N(time.Second)
		}
	}
	if wait > c.rest {
		return err
	}
	c.rest -= wait
	return c.sleep(ctx, wait)
}

func (c *client) once(ctx context.Context, r *request, body []byte, out any) (http.Header, error) {
	u := *c.base
	u.RawPath = c.base.EscapedPath()
	if r.path != "" {
		u.RawPath = strings.TrimSuffix(u.RawPath, "/") + r.path
	}
	path, err := url.PathUnescape(u.RawPath)
	if err != nil {
		return nil, err
	}
	u.Path, u.RawQuery = path, r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	for _, h := range []http.Header{c.header, r.header} {
		for k, v := range h {
			req.Header[k] = v
		}
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return nil, c.broken(r, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	if err != nil {
		return nil, c.broken(r, fmt.Errorf("the answer breaks off: %w", err))
	}
	if len(text) > mostAnswer {
		return nil, &Error{Kind: Refused, Tracker: c.name, Status: answer.StatusCode, Err: fmt.Errorf("the answer has more than %d bytes", mostAnswer), unsure: r.changes()}
	}
	if err := c.judge(r, answer, text); err != nil {
		return nil, err
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			// Usually this is the page of a proxy.
			return nil, c.broken(r, fmt.Errorf("the answer is not what the API says: %w", err))
		}
	}
	return answer.Header, nil
}

// broken is the error of a request without a complete answer. If no connection was made, the
// request was not carried out.
func (c *client) broken(r *request, err error) error {
	var dial *net.OpError
	sent := !(errors.As(err, &dial) && dial.Op == "dial")
	var at *url.Error
	if errors.As(err, &at) {
		err = at.Err // the rest of the error is the address, with the search terms
	}
	if refused := redirectError(""); errors.As(err, &refused) {
		return &Error{Kind: Refused, Tracker: c.name, Err: c.clean(err.Error())}
	}
	return &Error{Kind: Down, Tracker: c.name, Err: c.clean(err.Error()), unsure: sent}
}

// clean makes a tracker's text fit for people, without the token.
func (c *client) clean(text string) error {
	for _, form := range c.hidden() {
		text = strings.ReplaceAll(text, form, "[token]")
	}
	text = reports.Clean(strings.Join(strings.Fields(text), " "))
	if len(text) > mostMessage {
		text = strings.ToValidUTF8(text[:mostMessage], "") + "..."
	}
	return errors.New(text)
}

// hidden are the forms in which the token is sent.
func (c *client) hidden() []string {
	s := c.secret.text
	if s == "" {
		return nil
	}
	_, sent, _ := strings.Cut(c.header.Get("Authorization"), " ")
	list := []string{s, url.QueryEscape(s), base64.StdEncoding.EncodeToString([]byte(s))}
	if sent != "" {
		list = append(list, sent)
	}
	return append(list, c.secrets...)
}

// judge returns an error for an error answer.
func (c *client) judge(r *request, answer *http.Response, body []byte) error {
	status := answer.StatusCode
	fine := status >= 200 && status < 300 || status == http.StatusNotModified && r.changes()
	if fine && !c.inOK {
		return nil
	}
	said, code := c.message(body)
	if fine && said == "" {
		return nil
	}
	e := &Error{Tracker: c.name, Status: status, Code: code}
	e.Until = c.until(answer.Header)
	limited := status == http.StatusTooManyRequests ||
		status == http.StatusForbidden && (!e.Until.IsZero() || strings.Contains(strings.ToLower(said), "rate limit"))
	switch {
	case limited:
		e.Kind = Down
		if e.Until.IsZero() {
			e.Until = c.clock().Add(limitWait)
		}
	case status >= 500 || status == http.StatusRequestTimeout:
		// A gateway that gives up does not know whether the request was carried out.
		e.Kind, e.unsure = Down, true
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Kind, e.Until = Denied, time.Time{}
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Kind, e.Until = Missing, time.Time{}
	default:
		e.Kind, e.Until = Refused, time.Time{}
		e.tooLong = status == http.StatusRequestEntityTooLarge || lengthWords.MatchString(said)
	}
	what := fmt.Sprintf("it answers %s with status %d", r.method, status)
	if limited {
		what = "it wants no more requests for now"
	}
	if said != "" {
		what += ": " + said
	}
	if c.secret.Empty() && (e.Kind == Denied || e.Kind == Missing) {
		// Most trackers report a project as missing to accounts that may not see it.
		what = "there is no token (" + TokenVariable + "), and " + what
	}
	e.Err = c.clean(what)
	return e
}

// lengthWords matches the messages about a text that is too long: "body is too long (maximum is
// 65536 characters)" by GitHub, "is too long" by GitLab, "The entered text is too long." by Jira,
// "Comments cannot be longer than 65535 characters." by Bugzilla.
var lengthWords = regexp.MustCompile(`(?i)\btoo (long|large)\b|\blonger than\b`)

// until returns when a tracker accepts requests again. Retry-After has seconds or a date (RFC 9110,
// 10.2.3). The resets are seconds since 1970 (GitHub, GitLab) or an ISO 8601 time (Jira's cloud),
// and count if no requests remain.
func (c *client) until(h http.Header) time.Time {
	now := c.clock()
	if v := h.Get("Retry-After"); v != "" {
		if n, err := strconv.Atoi(v); err == nil && n >= 0 {
			return now.Add(time.Duration(min(n, 1<<30)) * time.Second)
		}
		if at, err := http.ParseTime(v); err == nil {
			return at
		}
	}
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		if h.Get(prefix+"Remaining") != "0" {
			continue
		}
		v := h.Get(prefix + "Reset")
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return time.Unix(n, 0)
		}
		for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
			if at, err := time.Parse(form, v); err == nil {
				return at
			}
		}
	}
	return time.Time{}
}
