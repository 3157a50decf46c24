package share

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"diagnose/corpus"
	"diagnose/fleet/engine"
)

// user makes an nkey. Its public key goes to the environment, its seed to a file.
func user(t *testing.T, variable string) (seedFile string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(variable, public)
	seedFile = filepath.Join(t.TempDir(), variable)
	if err := os.WriteFile(seedFile, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	return seedFile
}

// certificate makes a certificate, for a server or a client, that its own key signed.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "engine"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// configured starts a server by an example's file, on a free port of loopback, and returns its
// URL. change may change the options.
func configured(t *testing.T, name string, change func(*server.Options)) string {
	t.Helper()
	t.Setenv("NATS_STORE", t.TempDir())
	o, err := server.ProcessConfigFile(filepath.Join("../../docs/examples/fleet", name))
	if err != nil {
		t.Fatal(err)
	}
	o.Host, o.Port, o.NoLog, o.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	change(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s.ClientURL()
}

func connect(t *testing.T, o engine.Options) *engine.Engine {
	t.Helper()
	o.Patience = 10 * time.Second
	e, err := engine.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// refused fails unless the engine denies a pull, and gives away nothing.
func refused(t *testing.T, what string, e *engine.Engine) {
	t.Helper()
	to := created(t)
	began := time.Now()
	done, err := Pull(t.Context(), e, to, PullOptions{})
	var denied *engine.DeniedError
	if !errors.As(err, &denied) || len(done.Added) > 0 || len(entries(t, to)) > 0 {
		t.Errorf("%s pulled %+v, %v", what, done, err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%s waited %v for a refusal", what, took)
	}
}

func TestExampleServer(t *testing.T) {
	cert, key := certificate(t)
	t.Setenv("NATS_CERT", cert)
	t.Setenv("NATS_KEY", key)
	people, hosts, desktop := user(t, "WEB_PEOPLE"), user(t, "WEB_HOSTS"), user(t, "DESKTOP_PEOPLE")
	url := configured(t, "nats-server.conf", func(*server.Options) {})

	c := created(t)
	id := add(t, c, recording(t, 1), nil)
	ci := connect(t, engine.Options{URL: url, CA: cert, Credentials: hosts, Team: "web"})
	packed, err := corpus.PackRecording(t.Context(), recording(t, 3), corpus.PackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var denied *engine.DeniedError
	if _, err := Push(t.Context(), ci, &packed, nil); !errors.As(err, &denied) {
		t.Errorf("a host made the buckets: %v", err)
	}
	web := connect(t, engine.Options{URL: url, CA: cert, Credentials: people, Team: "web"})
	pushAll(t, web, c)
	add(t, c, recording(t, 4), nil)
	pushAll(t, ci, c)
	if again := pushAll(t, ci, c); !again[0].Existed {
		t.Errorf("%+v", again)
	}
	add(t, c, recording(t, 2), nil) // shares chunks with the first
	pushAll(t, ci, c)
	refused(t, "a host", ci)
	if done := pull(t, web, created(t), corpus.Filter{}); len(done.Added) != 3 || !slices.Contains(done.Added, id) {
		t.Errorf("%+v", done)
	}
	// The account keeps the teams apart, whatever name a user gives his team.
	for _, team := range []string{"web", "desktop"} {
		other := connect(t, engine.Options{URL: url, CA: cert, Credentials: desktop, Team: team})
		if done := pull(t, other, created(t), corpus.Filter{}); len(done.Added) > 0 {
			t.Errorf("desktop as %s: %+v", team, done)
		}
	}
	for name, o := range map[string]engine.Options{
		"without TLS's authority": {URL: url, Credentials: people, Team: "web"},
		"without a credential":    {URL: url, CA: cert, Team: "web"},
		"with an unknown key":     {URL: url, CA: cert, Credentials: user(t, "UNKNOWN"), Team: "web"},
	} {
		if e, err := engine.Connect(t.Context(), o); err == nil {
			e.Close()
			t.Errorf("%s: connected", name)
		}
	}
}

// A server that wants clients' certificates gets those of the options.
func TestClientCertificate(t *testing.T) {
	cert, key := certificate(t)
	t.Setenv("NATS_CERT", cert)
	t.Setenv("NATS_KEY", key)
	o := engine.Options{Credentials: user(t, "WEB_PEOPLE"), CA: cert, Team: "web", Patience: 10 * time.Second}
	user(t, "WEB_HOSTS")
	user(t, "DESKTOP_PEOPLE")
	own, ownKey := certificate(t)
	o.URL = configured(t, "nats-server.conf", func(options *server.Options) {
		text, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		options.TLSConfig.ClientAuth, options.TLSConfig.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		options.TLSConfig.ClientCAs.AppendCertsFromPEM(text)
	})
	if e, err := engine.Connect(t.Context(), o); err == nil {
		e.Close()
		t.Error("connected without a certificate")
	}
	o.Cert, o.Key = own, ownKey
	e := connect(t, o)
	if keys, err := e.RecordKeys(t.Context(), entriesKind); err != nil || len(keys) > 0 {
		t.Errorf("%q, %v", keys, err)
	}
}
