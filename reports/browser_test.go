package reports

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// noBrowserError says that this machine has no browser to look at pages with, or
// does not let it run.
type noBrowserError struct{ err error }

func (e *noBrowserError) Error() string { return "no Chromium: " + e.err.Error() }

// browserNames are the commands that may be a Chromium. (Ubuntu's
// chromium-browser is none: it asks for a snap.)
var browserNames = []string{"chromium", "google-chrome"}

// browser is a headless Chromium, spoken to by the protocol of its developer
// tools over a pipe: a line of JSON that ends in a zero byte, each way.
type browser struct {
	t       *testing.T
	cmd     *exec.Cmd
	to      *os.File
	from    *bufio.Reader
	pipe    *os.File
	session string
	last    int
	// events are those that came since the last navigation.
	events []browserEvent
}

type browserEvent struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	Session   string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *browserError   `json:"error"`
	Exception json.RawMessage `json:"exceptionDetails"`
}

type browserError struct {
	Message string `json:"message"`
}

// patience bounds every answer of the browser: it is many times what a busy
// machine takes.
const patience = 2 * time.Minute

func startBrowser(t *testing.T) (*browser, error) {
	t.Helper()
	var exe string
	var err error
	for _, name := range browserNames {
		if exe, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, &noBrowserError{err}
	}
	fromUs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, to: to, pipe: from, from: bufio.NewReader(from)}
	profile := t.TempDir()
	b.cmd = exec.Command(exe, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+profile)
	b.cmd.ExtraFiles = []*os.File{fromUs, toUs} // its descriptors 3 and 4
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.Env = append(os.Environ(), "HOME="+profile, "TMPDIR="+profile, "DBUS_SESSION_BUS_ADDRESS=disabled:")
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromUs.Close()
	toUs.Close()
	t.Cleanup(func() {
		syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
		b.cmd.Wait()
		to.Close()
		from.Close()
		// Its helpers may write into the profile until they have noticed.
		for range 100 {
			if os.RemoveAll(profile) == nil {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	if err := b.greet(); err != nil {
		return nil, err
	}
	var target struct {
		ID string `json:"targetId"`
	}
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	b.call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b, nil
}

// greet sees whether the browser answers; one that ends instead cannot run here.
func (b *browser) greet() error {
	b.t.Helper()
	hello := []byte(`{"id": 0, "method": "Browser.getVersion"}` + "\x00")
	if _, err := b.to.Write(hello); err == nil {
		if err := b.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
			b.t.Fatal(err)
		}
		_, err := b.from.ReadBytes(0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, io.EOF) {
			b.t.Fatalf("the browser does not answer: %v", err)
		}
	}
	return &noBrowserError{fmt.Errorf("%s ended at its start", b.cmd.Path)}
}

// call sends a command and reads until its answer comes.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.last++
	if params == nil {
		params = map[string]any{}
	}
	command := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		command["sessionId"] = b.session
	}
	text, err := json.Marshal(command)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	id := b.last
	answer := b.until(method, func(e *browserEvent) bool { return e.ID == id })
	if answer.Error != nil {
		b.t.Fatalf("%s: %s", method, answer.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result, result); err != nil {
			b.t.Fatalf("%s: %v in %s", method, err, answer.Result)
		}
	}
}

// until reads what the browser says up to the first event of that sort.
func (b *browser) until(what string, found func(*browserEvent) bool) *browserEvent {
	b.t.Helper()
	if err := b.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		b.t.Fatal(err)
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			b.t.Fatalf("%s: the browser says no more: %v", what, err)
		}
		var e browserEvent
		if err := json.Unmarshal(text[:len(text)-1], &e); err != nil {
			b.t.Fatalf("%s: %v in %s", what, err, text)
		}
		if e.Method != "" {
			b.events = append(b.events, e)
		}
		if found(&e) {
			return &e
		}
	}
}

// open loads a page from a file, as its reader does.
func (b *browser) open(page string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		b.t.Fatal(err)
	}
	// From one page to the same one with another fragment nothing would be loaded.
	b.navigate("about:blank")
	b.events = nil
	b.navigate("file://" + file)
}

func (b *browser) navigate(url string) {
	b.t.Helper()
	var to struct {
		Error string `json:"errorText"`
	}
	n := len(b.events)
	b.call("Page.navigate", map[string]any{"url": url}, &to)
	if to.Error != "" {
		b.t.Fatalf("%s: %s", url, to.Error)
	}
	for _, e := range b.events[n:] {
		if e.Method == "Page.loadEventFired" {
			return
		}
	}
	b.until("load", func(e *browserEvent) bool { return e.Method == "Page.loadEventFired" })
}

// eval runs a script in the page. Text that is code of the developer tools is
// not held to the page's policy.
func (b *browser) eval(script string, result any) {
	b.t.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text      string `json:"text"`
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.Exception != nil {
		b.t.Fatalf("%s: %s %s", script, answer.Exception.Text, answer.Exception.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %v in %q", script, err, answer.Result.Value)
		}
	}
}

func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// media sets what the page is shown on, "screen" or "print", and the colours
// that its reader prefers, "light" or "dark".
func (b *browser) media(media, colors string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": colors}}}, nil)
}

func (b *browser) press(key string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
	params := map[string]any{"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		params["text"] = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params["type"] = kind
		b.call("Input.dispatchKeyEvent", params, nil)
	}
}

func (b *browser) pointAt(x, y float64) {
	b.t.Helper()
	b.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// screenshotVariable is a directory that the pages' pictures are put into, for
// people to look at.
const screenshotVariable = "DIAGNOSE_SCREENSHOTS"

// screenshot keeps a picture of the whole page, if that is asked for.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv(screenshotVariable)
	if dir == "" {
		return
	}
	var picture struct {
		Data string `json:"data"`
	}
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// complaints are the errors, warnings and refusals that the page led to, and
// what it loaded beside itself.
func (b *browser) complaints() []string {
	b.t.Helper()
	b.eval("new Promise(done => setTimeout(done, 0))", nil) // what is under way gets said
	var list []string
	documents := 0
	for _, e := range b.events {
		switch e.Method {
		case "Network.requestWillBeSent":
			if documents++; documents > 1 {
				list = append(list, fmt.Sprintf("it asks for %s", e.Params))
			}
		case "Log.entryAdded", "Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Runtime.consoleAPICalled":
			list = append(list, fmt.Sprintf("%s: %s", e.Method, e.Params))
		}
	}
	if documents == 0 {
		list = append(list, "it was not asked for")
	}
	return list
}

// withBrowser runs a test with a browser; without one it is skipped.
func withBrowser(t *testing.T) *browser {
	t.Helper()
	b, err := startBrowser(t)
	var none *noBrowserError
	if errors.As(err, &none) {
		t.Skip(none)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}
