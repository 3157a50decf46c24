package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

// startTime is how long an embedded server may take to start: it reads what its directory has.
const startTime = 2 * time.Minute

// ErrBusy says that another process uses the directory of an embedded server.
var ErrBusy = errors.New("another process uses this directory")

// ServerOptions are the options of an embedded server.
type ServerOptions struct {
	// Dir is where JetStream keeps its files. It is created, and private to its owner.
	Dir string
	// Listen is the address, host:port, that other processes connect to; port 0 is any free one.
	// They need the token in Server.URL. Empty: no other process can connect.
	Listen string
	// MaxBytes is the maximum size of the stored data; 0: three quarters of the free space, by JetStream.
	MaxBytes int64
}

// Server is an embedded NATS server with JetStream.
type Server struct {
	nats  *server.Server
	lock  *os.File
	token string
}

// StartEmbedded starts a server with its files in dir that only this process can connect to.
func StartEmbedded(ctx context.Context, dir string) (*Server, error) {
	return Start(ctx, ServerOptions{Dir: dir})
}

// Start starts a server. The error is ErrBusy if another process uses the directory, and an
// *InputError if it is not private to this user.
func Start(ctx context.Context, o ServerOptions) (*Server, error) {
	lock, err := lockDirectory(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("engine: %s: %w", o.Dir, err)
	}
	s := &Server{lock: lock, token: rand.Text()}
	options := &server.Options{
		ServerName: "diagnose", JetStream: true, StoreDir: filepath.Join(o.Dir, "store"), JetStreamMaxStore: o.MaxBytes,
		NoLog: true, NoSigs: true, DontListen: true,
	}
	if o.Listen != "" {
		host, port, err := listenAddress(o.Listen)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("engine: %w", err)
		}
		options.DontListen, options.Host, options.Port, options.Authorization = false, host, port, s.token
	}
	if err := s.start(ctx, options); err != nil {
		s.Close()
		return nil, fmt.Errorf("engine: %s: %w", o.Dir, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, options *server.Options) error {
	var err error
	if s.nats, err = server.NewServer(options); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		s.nats.Start()
		ready <- s.nats.ReadyForConnections(startTime)
	}()
	select {
	case ok := <-ready:
		if !ok || !s.nats.JetStreamEnabled() {
			return fmt.Errorf("the embedded server did not start within %v", startTime)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lockDirectory makes the directory, and takes the lock that tells that it is in use. The kernel
// drops the lock with the process.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var info unix.Stat_t
	if err := unix.Lstat(dir, &info); err != nil {
		return nil, err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR || info.Mode&0o077 != 0 || int(info.Uid) != os.Geteuid() {
		return nil, inputf("it has to be a directory that only this user can enter (chmod 700)")
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrBusy
		}
		return nil, err
	}
	return lock, nil
}

func listenAddress(text string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, &InputError{err}
	}
	port, err = strconv.Atoi(number)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, inputf("%.40q is no port", number)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// URL is what other processes connect to, with the token: a secret. It is empty if the server
// does not listen.
func (s *Server) URL() string {
	address := s.nats.Addr()
	if address == nil {
		return ""
	}
	return (&url.URL{Scheme: "nats", User: url.User(s.token), Host: address.String()}).String()
}

// Connect connects this process to the server, not by the network.
func (s *Server) Connect(ctx context.Context, team string) (*Engine, error) {
	o := Options{URL: "nats://embedded", Team: team}
	o, err := o.checked()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	o.URL = ""
	e, err := connect(ctx, o, []nats.Option{nats.InProcessServer(s.nats), nats.Token(s.token)})
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return e, nil
}

// Close ends the server. What was stored stays in its directory.
func (s *Server) Close() {
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	s.lock.Close()
}
