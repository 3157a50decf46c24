// Package browsertest looks at pages in a headless Chromium, for tests.
package browsertest

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

// missingError says that this machine has no browser to look at pages with, or
// does not let it run.
type missingError struct{ err error }

func (e *missingError) Error() string { return "no Chromium: " + e.err.Error() }

// browserNames are the commands that may be a Chromium. (Ubuntu's
// chromium-browser is none: it asks for a snap.)
var browserNames = []string{"chromium", "google-chrome"}

// Browser is a headless Chromium, spoken to by the protocol of its developer
// tools over a pipe: a line of JSON that ends in a zero byte, each way.
type Browser struct {
	// T is the test that complains.
	T       *testing.T
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

func startBrowser(t *testing.T) (*Browser, error) {
	t.Helper()
	var exe string
	var err error
	for _, name := range browserNames {
		if exe, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return nil, &missingError{err}
	}
	fromUs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, toUs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{T: t, to: to, pipe: from, from: bufio.NewReader(from)}
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
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct {
		ID string `json:"sessionId"`
	}
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &session)
	b.session = session.ID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b, nil
}

// greet sees whether the browser answers; one that ends instead cannot run here.
func (b *Browser) greet() error {
	b.T.Helper()
	hello := []byte(`{"id": 0, "method": "Browser.getVersion"}` + "\x00")
	if _, err := b.to.Write(hello); err == nil {
		if err := b.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
			b.T.Fatal(err)
		}
		_, err := b.from.ReadBytes(0)
		if err == nil {
			return nil
		}
		if !errors.Is(err, io.EOF) {
			b.T.Fatalf("the browser does not answer: %v", err)
		}
	}
	return &missingError{fmt.Errorf("%s ended at its start", b.cmd.Path)}
}

// Call sends a command and reads until its answer comes.
func (b *Browser) Call(method string, params map[string]any, result any) {
	b.T.Helper()
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
		b.T.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.T.Fatalf("%s: %v", method, err)
	}
	id := b.last
	answer := b.until(method, func(e *browserEvent) bool { return e.ID == id })
	if answer.Error != nil {
		b.T.Fatalf("%s: %s", method, answer.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result, result); err != nil {
			b.T.Fatalf("%s: %v in %s", method, err, answer.Result)
		}
	}
}

// until reads what the browser says up to the first event of that sort.
func (b *Browser) until(what string, found func(*browserEvent) bool) *browserEvent {
	b.T.Helper()
	if err := b.pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		b.T.Fatal(err)
	}
	for {
		text, err := b.from.ReadBytes(0)
		if err != nil {
			b.T.Fatalf("%s: the browser says no more: %v", what, err)
		}
		var e browserEvent
		if err := json.Unmarshal(text[:len(text)-1], &e); err != nil {
			b.T.Fatalf("%s: %v in %s", what, err, text)
		}
		if e.Method != "" {
			b.events = append(b.events, e)
		}
		if found(&e) {
			return &e
		}
	}
}

// Open loads a page from a file, as its reader does.
func (b *Browser) Open(page string) {
	b.T.Helper()
	file := filepath.Join(b.T.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		b.T.Fatal(err)
	}
	b.OpenFile(file)
}

// OpenFile loads a page whose links are files next to it.
func (b *Browser) OpenFile(file string) {
	b.T.Helper()
	// From one page to the same one with another fragment nothing would be loaded.
	b.navigate("about:blank")
	b.events = nil
	b.navigate("file://" + file)
}

// Visit loads a page of a server.
func (b *Browser) Visit(url string) {
	b.T.Helper()
	b.navigate("about:blank")
	b.events = nil
	b.navigate(url)
}

// Loaded waits for the page that a link leads to.
func (b *Browser) Loaded() {
	b.T.Helper()
	b.until("load", func(e *browserEvent) bool { return e.Method == "Page.loadEventFired" })
}

func (b *Browser) navigate(url string) {
	b.T.Helper()
	var to struct {
		Error string `json:"errorText"`
	}
	n := len(b.events)
	b.Call("Page.navigate", map[string]any{"url": url}, &to)
	if to.Error != "" {
		b.T.Fatalf("%s: %s", url, to.Error)
	}
	for _, e := range b.events[n:] {
		if e.Method == "Page.loadEventFired" {
			return
		}
	}
	b.until("load", func(e *browserEvent) bool { return e.Method == "Page.loadEventFired" })
}

// Eval runs a script in the page. Text that is code of the developer tools is
// not held to the page's policy.
func (b *Browser) Eval(script string, result any) {
	b.T.Helper()
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
	b.Call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &answer)
	if answer.Exception != nil {
		b.T.Fatalf("%s: %s %s", script, answer.Exception.Text, answer.Exception.Exception.Description)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result.Value, result); err != nil {
			b.T.Fatalf("%s: %v in %q", script, err, answer.Result.Value)
		}
	}
}

func (b *Browser) Size(width, height int) {
	b.T.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Media sets what the page is shown on, "screen" or "print", and the colours
// that its reader prefers, "light" or "dark".
func (b *Browser) Media(media, colors string) {
	b.T.Helper()
	b.Call("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": colors}}}, nil)
}

func (b *Browser) Press(key string) {
	b.T.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
	params := map[string]any{"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if key == "Enter" {
		params["text"] = "\r"
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		params["type"] = kind
		b.Call("Input.dispatchKeyEvent", params, nil)
	}
}

func (b *Browser) PointAt(x, y float64) {
	b.T.Helper()
	b.Call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x, "y": y}, nil)
}

// Drag presses the main button at a place, moves the pointer to another one and releases the
// button; between equal places it is a click.
func (b *Browser) Drag(fromX, fromY, toX, toY float64) {
	b.T.Helper()
	mouse := func(kind string, x, y float64, buttons int) {
		b.Call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1}, nil)
	}
	mouse("mousePressed", fromX, fromY, 1)
	if fromX != toX || fromY != toY {
		mouse("mouseMoved", (fromX+toX)/2, (fromY+toY)/2, 1)
		mouse("mouseMoved", toX, toY, 1)
	}
	mouse("mouseReleased", toX, toY, 0)
}

// ScreenshotVariable is a directory that the pages' pictures are put into, for
// people to look at.
const ScreenshotVariable = "DIAGNOSE_SCREENSHOTS"

// Screenshot keeps a picture of the whole page, if that is asked for.
func (b *Browser) Screenshot(name string) {
	b.T.Helper()
	dir := os.Getenv(ScreenshotVariable)
	if dir == "" {
		return
	}
	var picture struct {
		Data string `json:"data"`
	}
	b.Call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &picture)
	data, err := base64.StdEncoding.DecodeString(picture.Data)
	if err != nil {
		b.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil {
		b.T.Fatal(err)
	}
}

// Complaints are the errors, warnings and refusals that the page led to, and
// what it loaded beside itself.
func (b *Browser) Complaints() []string {
	b.T.Helper()
	b.Eval("new Promise(done => setTimeout(done, 0))", nil) // pending messages are delivered
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

// New runs a test with a browser; without one it is skipped.
func New(t *testing.T) *Browser {
	t.Helper()
	b, err := startBrowser(t)
	var none *missingError
	if errors.As(err, &none) {
		t.Skip(none)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}
