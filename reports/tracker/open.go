package tracker

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"diagnose/reports"
)

// Options say how a tracker is used.
type Options struct {
	// Token and User identify the account. A directory needs neither.
	Token Secret
	User  string
	// DryRun reads and changes nothing.
	DryRun bool
}

// SpecHelp describes what Open takes.
const SpecHelp = `dir:PATH, github:OWNER/REPO, gitlab:GROUP/PROJECT, gitea:https://HOST/OWNER/REPO,
jira:https://HOST/PROJECT, bugzilla:https://HOST/PRODUCT/COMPONENT`

// Open returns the tracker that a text names. GitHub and GitLab may be named with an address as
// well (github:https://HOST/OWNER/REPO). If a server is not at the root of its host, its path
// precedes that of the project. The address must be https, except on this machine itself. Options
// follow a question mark: Jira's type of issue (type=Bug), and Bugzilla's version, op_sys,
// platform, priority and severity.
func Open(spec string, opts Options) (Tracker, error) {
	kind, rest, found := strings.Cut(spec, ":")
	if !found || rest == "" {
		return nil, fmt.Errorf("%q names no tracker; it is one of %s", spec, SpecHelp)
	}
	if kind == "dir" {
		path, err := filepath.Abs(rest)
		if err != nil {
			return nil, err
		}
		return &directory{path: path, dry: opts.DryRun, now: time.Now}, nil
	}
	hosts := map[string]string{"github": "https://github.com/", "gitlab": "https://gitlab.com/"}
	if !strings.Contains(rest, "://") {
		host, ok := hosts[kind]
		if !ok {
			return nil, fmt.Errorf("%q: %s takes an address that begins with https://; see %s", spec, kind, SpecHelp)
		}
		rest = host + rest
	}
	at, err := address(rest)
	if err != nil {
		return nil, fmt.Errorf("the tracker's address: %w", err)
	}
	h, err := host(kind, at, opts)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", kind, err)
	}
	return h, nil
}

// address parses an address to which a token may be sent. Its errors do not show the address, as it
// may contain a password.
func address(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	switch {
	case at.User != nil:
		return nil, errors.New("it has a name or a password in it, which belongs into the environment or a file")
	case at.Host == "" || at.Fragment != "":
		return nil, errors.New("it has no host, or a fragment")
	case at.Scheme == "https", at.Scheme == "http" && local(at.Hostname()):
		return at, nil
	}
	return nil, errors.New("it does not begin with https://, without which the token could be read on the way")
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// parts splits the end of a path into the names of a project; before is the server's
// own path.
func parts(at *url.URL, n int) (before string, names []string, err error) {
	for _, p := range strings.Split(strings.Trim(at.EscapedPath(), "/"), "/") {
		name, err := url.PathUnescape(p)
		if err != nil || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "\"\\\r\n\x00") {
			return "", nil, errors.New("a part of its path is empty or no name")
		}
		names = append(names, name)
	}
	if len(names) < n {
		return "", nil, fmt.Errorf("its path has fewer than %d parts", n)
	}
	k := len(names) - n
	for _, p := range names[:k] {
		before += "/" + url.PathEscape(p)
	}
	return before, names[k:], nil
}

func host(kind string, at *url.URL, opts Options) (*hosted, error) {
	query := at.Query()
	allowed := map[string][]string{"jira": {"type"}, "bugzilla": {"version", "op_sys", "platform", "priority", "severity", "type"}}
	for k := range query {
		if !slices.Contains(allowed[kind], k) {
			return nil, fmt.Errorf("there is no option %q", k)
		}
	}
	n := map[string]int{"github": 2, "gitea": 2, "gitlab": 2, "jira": 1, "bugzilla": 2}[kind]
	if n == 0 {
		return nil, fmt.Errorf("there is no such kind of tracker; there are %s", SpecHelp)
	}
	before, names, err := parts(at, n)
	if err != nil {
		return nil, err
	}
	server := func(path string) *url.URL {
		u, _ := url.Parse(at.Scheme + "://" + at.Host + path)
		return u
	}
	name := kind + ":" + at.Scheme + "://" + at.Host + at.EscapedPath()
	h := &hosted{dry: opts.DryRun}
	switch kind {
	case "github":
		base := server(before + "/api/v3")
		if at.Host == "github.com" {
			base = server("")
			base.Host = "api.github.com"
			name = "github:" + strings.Join(names, "/")
		}
		h.opts, h.client = reports.GitHubIssue, newClient(name, base, opts.Token)
		h.api = newGitHub(h.client, names[0], names[1])
	case "gitea":
		h.opts, h.client = reports.GiteaIssue, newClient(name, server(before+"/api/v1"), opts.Token)
		h.api = newGitea(h.client, names[0], names[1])
	case "gitlab":
		if at.Host == "gitlab.com" {
			name = "gitlab:" + strings.Trim(at.Path, "/")
		}
		h.opts, h.client = reports.GitLabIssue, newClient(name, server("/api/v4"), opts.Token)
		h.api = newGitLab(h.client, strings.Trim(at.Path, "/")) // groups nest
	case "jira":
		issueType := query.Get("type")
		if issueType == "" {
			issueType = "Bug"
		}
		h.opts, h.client = reports.JiraIssue, newClient(name, server(before+"/rest/api/2"), opts.Token)
		h.api = newJira(h.client, names[0], issueType, opts.User)
	case "bugzilla":
		fields := map[string]string{"version": "unspecified"}
		for k := range query {
			fields[k] = query.Get(k)
		}
		h.opts, h.client = reports.BugzillaIssue, newClient(name, server(before+"/rest"), opts.Token)
		h.api = newBugzilla(h.client, names[0], names[1], fields)
	}
	return h, nil
}
