package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/reports/tracker"
)

// giteaServer is a real Gitea, with a user and its tokens.
type giteaServer struct {
	t                  *testing.T
	program, dir, addr string
	// admin is the test's token. issues may write issues and nothing else.
	admin, issues string
	process       *exec.Cmd
}

const giteaUser = "tester"

// startGitea starts the Gitea that is in a directory, as scripts/gitea makes it.
func startGitea(t *testing.T, from string) *giteaServer {
	t.Helper()
	g := &giteaServer{t: t, program: filepath.Join(from, "gitea"), dir: t.TempDir()}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(g.addr)
	settings := fmt.Sprintf(`RUN_USER = %s
RUN_MODE = prod
WORK_PATH = %s
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %s
ROOT_URL = http://%s/
STATIC_ROOT_PATH = %s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
[security]
INSTALL_LOCK = true
[cron]
ENABLED = false
[log]
LEVEL = Warn
`, who.Username, g.dir, port, g.addr, from)
	if err := os.WriteFile(g.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	g.runGitea("migrate")
	g.runGitea("admin", "user", "create", "--username", giteaUser, "--password", "a-long-pass-word-1", "--email", "tester@example.org", "--admin", "--must-change-password=false")
	g.admin = g.token("test", "all")
	g.issues = g.token("diagnose", "write:issue")
	t.Cleanup(g.stop)
	g.start()
	return g
}

func (g *giteaServer) settings() string { return filepath.Join(g.dir, "app.ini") }

func (g *giteaServer) log() string { return filepath.Join(g.dir, "web.log") }

func (g *giteaServer) command(args ...string) *exec.Cmd {
	cmd := exec.Command(g.program, append([]string{"--config", g.settings(), "--work-path", g.dir}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+g.dir)
	return cmd
}

func (g *giteaServer) runGitea(args ...string) string {
	g.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := g.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		g.t.Fatalf("gitea %q: %v\n%s%s", args, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

func (g *giteaServer) token(name, scopes string) string {
	g.t.Helper()
	text := g.runGitea("admin", "user", "generate-access-token", "--username", giteaUser, "--token-name", name, "--scopes", scopes, "--raw")
	found := regexp.MustCompile(`(?m)^[0-9a-f]{40}$`).FindAllString(text, -1) // root gets a warning before or after it
	if len(found) != 1 {
		g.t.Fatalf("the token %s is %q", name, text)
	}
	return found[0]
}

// start runs the server until stop is called.
func (g *giteaServer) start() {
	g.t.Helper()
	log, err := os.OpenFile(g.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		g.t.Fatal(err)
	}
	defer log.Close()
	g.process = g.command("web")
	g.process.Stdout, g.process.Stderr = log, log
	if err := g.process.Start(); err != nil {
		g.t.Fatal(err)
	}
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		answer, err := http.Get("http://" + g.addr + "/api/v1/version")
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
	}
	text, err := os.ReadFile(g.log())
	g.t.Fatalf("gitea does not answer: %s, %v", text, err)
}

func (g *giteaServer) stop() {
	if g.process != nil {
		g.process.Process.Signal(os.Interrupt)
		ended := make(chan error, 1)
		go func(p *exec.Cmd) { ended <- p.Wait() }(g.process)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			g.process.Process.Kill()
			<-ended
		}
		g.process = nil
		http.DefaultClient.CloseIdleConnections() // otherwise the next request may use a closed connection
	}
}

// call makes a request of the test's own.
func (g *giteaServer) call(method, path string, body, out any) {
	g.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	text = g.send(method, path, text)
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			g.t.Fatal(err)
		}
	}
}

func (g *giteaServer) send(method, path string, body []byte) []byte {
	g.t.Helper()
	r, err := http.NewRequest(method, "http://"+g.addr+"/api/v1"+path, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "token "+g.admin)
	r.Header.Set("Content-Type", "application/json")
	return g.answer(r)
}

// fetch reads a page without signing in.
func (g *giteaServer) fetch(address string) []byte {
	g.t.Helper()
	r, err := http.NewRequest("GET", address, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.answer(r)
}

func (g *giteaServer) answer(r *http.Request) []byte {
	g.t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		g.t.Fatalf("%s %s: status %d, %v: %s", r.Method, r.URL, answer.StatusCode, err, text)
	}
	return text
}

// repo makes a repository that only its owner sees, and returns its name as --tracker
// takes it.
func (g *giteaServer) repo(name string) string {
	g.t.Helper()
	g.call("POST", "/user/repos", map[string]any{"name": name, "private": true}, nil)
	return "gitea:http://" + g.addr + "/" + giteaUser + "/" + name
}

type giteaIssue struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Assets []struct {
		Name string `json:"name"`
		URL  string `json:"browser_download_url"`
		Size int64  `json:"size"`
	} `json:"assets"`
	comments []string
}

// all are the issues of a repository, by their numbers.
func (g *giteaServer) all(repo string) []giteaIssue {
	g.t.Helper()
	var list []giteaIssue
	path := "/repos/" + giteaUser + "/" + repo + "/issues"
	g.call("GET", path+"?state=all&type=issues", nil, &list)
	for i := range list {
		var comments []struct {
			Body string `json:"body"`
		}
		g.call("GET", fmt.Sprintf("%s/%d/comments", path, list[i].Number), nil, &comments)
		for _, c := range comments {
			list[i].comments = append(list[i].comments, c.Body)
		}
	}
	return list
}

// The nights of a team with a real Gitea, if make gitea has installed one.
func TestNightlyGitea(t *testing.T) {
	from := os.Getenv("DIAGNOSE_GITEA")
	if from == "" {
		t.Skip("DIAGNOSE_GITEA names no directory with a Gitea; make gitea builds one")
	}
	g := startGitea(t, from)
	for _, c := range []struct {
		name string
		test func(*testing.T, *giteaServer)
	}{{"life", testGiteaLife}, {"two hosts", testGiteaTwoHosts}, {"markup", testGiteaMarkup}, {"no", testGiteaNo}} {
		t.Run(c.name, func(t *testing.T) {
			g.t = t
			c.test(t, g)
		})
	}
	g.t = t
	if text, err := os.ReadFile(g.log()); t.Failed() {
		t.Logf("%s, %v", text, err)
	}
}

func testGiteaLife(t *testing.T, g *giteaServer) {
	n := newNights(t, g.repo("life"), g.issues)
	n.told(tracker.Opened, "--dry-run")
	if list := g.all("life"); len(list) != 0 {
		t.Fatalf("a dry run opens %+v", list)
	}
	opened := n.told(tracker.Opened)
	if opened.Issue != "1" || opened.URL != "http://"+g.addr+"/"+giteaUser+"/life/issues/1" || opened.Note != "" {
		t.Errorf("%+v", opened)
	}
	one := func() giteaIssue {
		t.Helper()
		list := g.all("life")
		if len(list) != 1 {
			t.Fatalf("%d issues: %+v", len(list), list)
		}
		return list[0]
	}
	is := one()
	if !strings.Contains(is.Title, "session->user->name") || !strings.Contains(is.Body, "1 failure so far") || !strings.HasSuffix(strings.TrimSpace(is.Body), opened.Digest) || len(is.comments) != 0 {
		t.Errorf("%+v", is)
	}
	if len(is.Assets) != 1 || is.Assets[0].Name != "report.md" || is.Assets[0].Size < 200 {
		t.Errorf("assets %+v", is.Assets)
	}
	n.quiet()

	n.fail("first")
	n.aDayLater()
	if got := n.told(tracker.Commented); got.Issue != "1" {
		t.Errorf("%+v", got)
	}
	if is = one(); len(is.comments) != 1 || !strings.Contains(is.comments[0], "2 in all") {
		t.Errorf("%+v", is)
	}
	n.fail("first")
	n.aDayLater()
	n.told(tracker.Quiet) // the comment is of this night

	other := newNights(t, n.spec, g.issues) // which finds it by its key
	if got := other.told(tracker.Quiet); got.Issue != "1" {
		t.Errorf("%+v", got)
	}

	g.call("PATCH", "/repos/"+giteaUser+"/life/issues/1", map[string]any{"state": "closed"}, nil)
	n.fail("first")
	n.aDayLater()
	n.told(tracker.LeftClosed)
	if is = one(); is.State != "closed" {
		t.Errorf("it is %s", is.State)
	}
	// Gitea keeps whole seconds.
	time.Sleep(1100 * time.Millisecond)
	n.fail("later")
	n.aDayLater()
	n.told(tracker.Reopened)
	if is = one(); is.State != "open" || len(is.comments) != 2 || !strings.Contains(is.comments[1], "It is back") {
		t.Errorf("%+v", is)
	}

	g.stop()
	n.fail("later")
	n.aDayLater()
	if k, _ := n.runNight(); k.Error == "" || len(k.Issues) != 0 {
		t.Errorf("a server that is down: %+v", k)
	}
	g.start()
	n.told(tracker.Quiet) // its comment is of this night
	n.hides()
}

// Hosts that start together leave one open issue, whichever host is first. Two hosts open an issue
// only by luck, so the test repeats until they do.
func testGiteaTwoHosts(t *testing.T, g *giteaServer) {
	var hosts []*nights
	for range 3 {
		n := newNights(t, "none", g.issues)
		n.runText()
		hosts = append(hosts, n)
	}
	for try := range 20 {
		repo := fmt.Sprintf("hosts%d", try)
		spec := g.repo(repo)
		var group sync.WaitGroup
		for _, n := range hosts {
			group.Go(func() {
				got := diagnoseWith(t, []string{tracker.TokenVariable + "=" + g.issues}, "nightly", "--corpus", n.dir, "--tracker", spec)
				if got.status != exitOK || !strings.Contains(got.stdout, "Told to gitea:") || strings.Contains(got.stdout, "was not told") {
					t.Errorf("%+v", got)
				}
			})
		}
		group.Wait()
		list := g.all(repo)
		open := 0
		for _, is := range list {
			if is.State == "open" {
				open++
			} else if len(is.comments) == 0 || !strings.Contains(is.comments[len(is.comments)-1], "Duplicate of #") {
				t.Errorf("it is closed without a reason: %+v", is)
			}
		}
		if open != 1 {
			t.Fatalf("%d issues are open: %+v", open, list)
		}
		if len(list) > 1 {
			return
		}
	}
	t.Error("no two hosts opened an issue at the same time, in 20 tries")
}

// Gitea's page does not interpret the name of a failing program: no link, no mention, no element of
// its own.
func testGiteaMarkup(t *testing.T, g *giteaServer) {
	spec := g.repo("markup")
	g.call("PATCH", "/repos/"+giteaUser+"/markup", map[string]any{"private": false}, nil)
	hostile := "@" + giteaUser + " #1 " + giteaUser + "/markup#1 http://example.org/x www.example.org [a](http://example.org) ![b](http://example.org/b.png) <script>c()</script> <b>d</b> `e` | f |"
	elements := func(number int) []string {
		t.Helper()
		page := string(g.fetch(fmt.Sprintf("http://%s/%s/markup/issues/%d", g.addr, giteaUser, number)))
		_, text, begun := strings.Cut(page, `class="render-content markup"`)
		end := regexp.MustCompile(`id="issue-\d+-raw"`).FindStringIndex(text) // it counts all repositories' issues
		if begun && end != nil {
			text = text[:end[0]]
		}
		if !begun || end == nil || !strings.Contains(text, "example.org") {
			t.Fatalf("the page of issue %d is not as expected: %s", number, page)
		}
		return regexp.MustCompile(`<(a|img|script|b)[ >][^>]*`).FindAllString(text, -1)
	}
	g.call("POST", "/repos/"+giteaUser+"/markup/issues", map[string]any{"title": "as it is", "body": hostile}, nil)
	if found := elements(1); len(found) < 5 {
		t.Fatalf("Gitea makes nothing of it anyway, which shows nothing: %q", found)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(g.issues), 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := tracker.Token(file)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := tracker.Open(spec, tracker.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	c := &evidence.Case{Program: evidence.Program{Exe: "/srv/" + hostile, Args: hostile},
		Failure: evidence.Failure{Kind: evidence.Abort, Proof: evidence.FromCore, Sentence: "abort in " + hostile},
		Stacks: []evidence.ThreadGroup{{Threads: []evidence.ThreadRef{{Number: 1, TID: 7, Name: hostile}},
			Stack: evidence.Stack{Frames: []evidence.Frame{{Kind: evidence.Physical, Trust: evidence.TrustCFI, Site: evidence.Site{Function: hostile, File: "/src/" + hostile, Line: 3}}}}}}}
	now := time.Now()
	done, err := tr.Upsert(t.Context(), &tracker.Report{Digest: strings.Repeat("0123abcd", 4), Case: c, Version: "1.0", Count: 1, Recent: 1, First: now, Last: now, Since: now,
		Example: "ab12", BackSince: func(time.Time) string { return "" }})
	if err != nil || done.Issue != "2" {
		t.Fatalf("%+v, %v", done, err)
	}
	if found := elements(2); len(found) > 0 {
		t.Errorf("%q", found)
	}
}

// A refusal of Gitea is reported in its words, and costs the night nothing else.
func testGiteaNo(t *testing.T, g *giteaServer) {
	spec := g.repo("no")
	for name, c := range map[string]struct{ spec, token, says string }{
		"no such token": {spec, strings.Repeat("ab12", 10), "status 401"},
		"no such place": {spec + "where", g.issues, "status 404"},
		"only reading":  {spec, g.token("reader", "read:issue"), "status 403"},
	} {
		n := newNights(t, c.spec, c.token)
		if k, status := n.runNight(); status != exitNewCause || !strings.Contains(k.Error, c.says) || len(k.Issues) != 0 {
			t.Errorf("%s: status %d: %+v", name, status, k)
		}
		n.hides()
	}
	if list := g.all("no"); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}
