package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// operator makes the JWTs of a server in operator mode.
type operator struct {
	t    *testing.T
	key  nkeys.KeyPair
	jwts *server.MemAccResolver
}

func made(t *testing.T, pair nkeys.KeyPair, err error) (nkeys.KeyPair, string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return pair, public
}

// account makes an account, with JetStream unless it is the system's, and returns its key.
func (o *operator) account(system bool) (key nkeys.KeyPair, public string) {
	o.t.Helper()
	pair, err := nkeys.CreateAccount()
	key, public = made(o.t, pair, err)
	claims := jwt.NewAccountClaims(public)
	if !system {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 1 << 30, Streams: 10, Consumer: 10}
	}
	text, err := claims.Encode(o.key)
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.jwts.Store(public, text); err != nil {
		o.t.Fatal(err)
	}
	return key, public
}

// credential makes a user of an account, and writes its file.
func (o *operator) credential(account nkeys.KeyPair, expires time.Time) string {
	o.t.Helper()
	pair, err := nkeys.CreateUser()
	user, public := made(o.t, pair, err)
	claims := jwt.NewUserClaims(public)
	claims.Expires = expires.Unix()
	text, err := claims.Encode(account)
	if err != nil {
		o.t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		o.t.Fatal(err)
	}
	content, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		o.t.Fatal(err)
	}
	name := filepath.Join(o.t.TempDir(), "user.creds")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return name
}

// A server in operator mode: the JWTs of the credentials say whose account it is.
func TestOperatorMode(t *testing.T) {
	pair, err := nkeys.CreateOperator()
	key, public := made(t, pair, err)
	o := &operator{t, key, &server.MemAccResolver{}}
	_, system := o.account(true)
	red, _ := o.account(false)
	blue, _ := o.account(false)
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		TrustedKeys: []string{public}, AccountResolver: o.jwts, SystemAccount: system})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}

	connect := func(credential string) (*Engine, error) {
		e, err := Connect(t.Context(), Options{URL: s.ClientURL(), Credentials: credential, Team: "web", Patience: 10 * time.Second})
		if err == nil {
			t.Cleanup(e.Close)
		}
		return e, err
	}
	later := time.Now().Add(time.Hour)
	r, err := connect(o.credential(red, later))
	if err != nil {
		t.Fatal(err)
	}
	reference, _ := put(t, r, someTree(t))
	b, err := connect(o.credential(blue, later))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.GetTree(t.Context(), reference, filepath.Join(t.TempDir(), "x"), Limits{}); !is[*InputError](err) {
		t.Errorf("blue has red's tree: %v", err)
	}
	if _, err := connect(o.credential(red, time.Now().Add(-time.Hour))); !is[*DeniedError](err) {
		t.Errorf("an expired credential: %v", err)
	}
	pair, err = nkeys.CreateAccount()
	unknown, _ := made(t, pair, err)
	if _, err := connect(o.credential(unknown, later)); !is[*DeniedError](err) {
		t.Errorf("of an unknown account: %v", err)
	}
	if _, err := connect(""); !is[*DeniedError](err) {
		t.Errorf("without a credential: %v", err)
	}
}
