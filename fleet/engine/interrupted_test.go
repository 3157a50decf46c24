package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

// The test binary is also a server, so that it can be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("ENGINE_TEST_SERVER"); dir != "" {
		fmt.Fprintln(os.Stderr, serveIn(dir, os.Getenv("ENGINE_TEST_PORT")))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveIn(dir, port string) error {
	_, number, err := listenAddress("127.0.0.1:" + port)
	if err != nil {
		return err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: number, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return errors.New("the server ended")
}

// serverProcess is a server in a process of its own.
type serverProcess struct {
	t         *testing.T
	dir, port string
	cmd       *exec.Cmd
}

func newServerProcess(t *testing.T) *serverProcess {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	p := &serverProcess{t: t, dir: t.TempDir(), port: port}
	p.start()
	t.Cleanup(func() { p.kill() })
	return p
}

func (p *serverProcess) start() {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), "ENGINE_TEST_SERVER="+p.dir, "ENGINE_TEST_PORT="+p.port)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *serverProcess) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// connect waits until the server listens.
func (p *serverProcess) connect(o Options) *Engine {
	p.t.Helper()
	if o.URL == "" {
		o.URL = "nats://127.0.0.1:" + p.port
	}
	for range 100 {
		e, err := Connect(p.t.Context(), o)
		if err == nil {
			p.t.Cleanup(e.Close)
			return e
		}
		if !is[*UnreachableError](err) {
			p.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatal("the server does not listen")
	return nil
}

// manyChunks makes a directory with 8 MiB that do not compress.
func manyChunks(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 4 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), noise(uint64(100+i), 2<<20), 0o600)
	}
	return dir
}

// A push survives that the server is killed and started again, any number of times.
func TestServerKilledWhilePushing(t *testing.T) {
	p := newServerProcess(t)
	e := p.connect(Options{Patience: time.Minute})
	dir := manyChunks(t)
	kills, restarted := 0, make(chan struct{}, 1)
	restarted <- struct{}{}
	reference, err := e.PutTree(t.Context(), dir, func(g Progress) {
		if g.NewChunks < 10*(kills+1) {
			return
		}
		select {
		case <-restarted:
			kills++
			p.kill()
			go func() {
				time.Sleep(50 * time.Millisecond)
				p.start()
				restarted <- struct{}{}
			}()
		default:
		}
	})
	<-restarted
	if err != nil || kills < 3 {
		t.Fatalf("after %d kills: %v", kills, err)
	}
	p.kill()
	p.start()
	got := filepath.Join(t.TempDir(), "got")
	if err := e.GetTree(t.Context(), reference, got, Limits{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, got)
	if _, g := put(t, e, dir); g.NewChunks != 0 {
		t.Errorf("the server lost %d chunks", g.NewChunks)
	}
}

// A server that does not come back costs no more than the patience, and the push resumes with
// the next.
func TestServerStaysAway(t *testing.T) {
	p := newServerProcess(t)
	e := p.connect(Options{Patience: 2 * time.Second})
	dir := manyChunks(t)
	var once sync.Once
	began := time.Now()
	_, err := e.PutTree(t.Context(), dir, func(g Progress) {
		if g.NewChunks >= 20 {
			once.Do(p.kill)
		}
	})
	if took := time.Since(began); !is[*UnreachableError](err) || took > 15*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	p.start()
	again := p.connect(Options{})
	reference, g := put(t, again, dir)
	if g.NewChunks == 0 || g.NewChunks > g.Chunks-15 {
		t.Errorf("it did not resume: %+v", g)
	}
	if there, err := again.HasTree(t.Context(), reference); err != nil || !there {
		t.Errorf("%v, %v", there, err)
	}
}

// proxy passes bytes between clients and a server, unless it is cut: then they wait, and no side
// is told.
type proxy struct {
	listener net.Listener
	server   string
	mutex    sync.RWMutex // locked while it is cut
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &proxy{listener: l, server: server}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	go p.pass(server, client)
	p.pass(client, server)
}

func (p *proxy) pass(to io.Writer, from io.Reader) {
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		p.mutex.RLock()
		_, failed := to.Write(b[:n])
		p.mutex.RUnlock()
		if err != nil || failed != nil {
			return
		}
	}
}

func TestNetworkCut(t *testing.T) {
	p := newServerProcess(t)
	p.connect(Options{})
	cut := newProxy(t, "127.0.0.1:"+p.port)
	e := p.connect(Options{URL: "nats://" + cut.listener.Addr().String(), Patience: 8 * time.Second})
	dir := manyChunks(t)
	var once sync.Once
	reference, err := e.PutTree(t.Context(), dir, func(g Progress) {
		if g.NewChunks >= 20 {
			once.Do(func() {
				cut.mutex.Lock()
				time.AfterFunc(4*time.Second, cut.mutex.Unlock) // requests time out after 2 s
			})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got := filepath.Join(t.TempDir(), "got")
	if err := e.GetTree(t.Context(), reference, got, Limits{}); err != nil {
		t.Fatal(err)
	}
	same(t, dir, got)
}

// A full store is told as such. What was sent counts when there is room.
func TestFullStore(t *testing.T) {
	dir := manyChunks(t)
	s := start(t, ServerOptions{MaxBytes: 4 << 20})
	e := connected(t, s, "")
	if _, err := e.PutTree(t.Context(), dir, nil); !is[*FullError](err) {
		t.Fatalf("in a full store: %v", err)
	}
	e.Close()
	s.Close()
	e = connected(t, start(t, ServerOptions{Dir: filepath.Dir(s.lock.Name())}), "")
	if _, g := put(t, e, dir); g.NewChunks == 0 || g.NewChunks > g.Chunks*3/4 {
		t.Errorf("it did not resume: %+v", g)
	}
}

func TestFullBucket(t *testing.T) {
	e := connected(t, start(t, ServerOptions{}), "")
	_, err := e.JetStream().CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: e.Name(chunksKind), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.PutTree(t.Context(), manyChunks(t), nil); !is[*FullError](err) {
		t.Errorf("in a full bucket: %v", err)
	}
}

// An interrupted push is not seen, and leaves what it sent for the next.
func TestInterruptedPut(t *testing.T) {
	e := connected(t, start(t, ServerOptions{}), "")
	dir := manyChunks(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := e.PutTree(ctx, dir, func(g Progress) {
		if g.NewChunks >= 20 {
			cancel()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	trees, err := e.treeBucket(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := trees.Status(t.Context()); err != nil || status.Values() != 0 {
		t.Errorf("%d trees, %v", status.Values(), err)
	}
	if _, g := put(t, e, dir); g.NewChunks > g.Chunks-20 {
		t.Errorf("it did not resume: %+v", g)
	}
}
