package engine

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Options say which server, with which credentials, for which team.
type Options struct {
	// URL names the server: nats://host:4222 or tls://host:4222. Several servers of one cluster
	// are separated by commas.
	URL string
	// Credentials is a file with a NATS credential, a JWT and the seed of its nkey, or with the
	// seed of an nkey alone. Empty: none but those in the URL.
	Credentials string
	// CA is a file with the certificates that the server's is checked by; empty: those of the
	// system. Cert and Key are the client's certificate and its key, PEM; empty: none.
	CA, Cert, Key string
	// Team is a part of the names of streams, buckets and subjects: teams of one server do not
	// see each other's if the server gives them permissions so. Empty: "default".
	Team string
	// Patience is how long an operation waits for a server that is away; 0 is 2 minutes.
	Patience time.Duration
}

const (
	defaultTeam     = "default"
	defaultPatience = 2 * time.Minute
	// mostKeyFile is the maximum size of a file with a credential or a key, in bytes.
	mostKeyFile = 1 << 20
)

// teamName has no underscore, which separates the team from the rest of a bucket's name, and no
// character with a meaning in subjects.
var teamName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckTeam refuses text that is not the name of a team: up to 32 lower-case letters, digits and hyphens,
// with no hyphen at the ends.
func CheckTeam(team string) error {
	if !teamName.MatchString(team) {
		return inputf("%.80q is no name of a team: up to 32 lower-case letters, digits and hyphens, with no hyphen at the ends", team)
	}
	return nil
}

// Check refuses options that cannot be right, by an *InputError. It reads the files that they
// name, and asks no server.
func (o Options) Check() error {
	o, err := o.checked()
	if err == nil {
		_, err = o.security()
	}
	return err
}

// checked returns the options with their defaults, or an *InputError.
func (o Options) checked() (Options, error) {
	if o.Team == "" {
		o.Team = defaultTeam
	}
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if err := CheckTeam(o.Team); err != nil {
		return o, err
	}
	if (o.Cert == "") != (o.Key == "") {
		return o, inputf("a client's certificate needs its key, and the key its certificate")
	}
	return o, checkURL(o.URL)
}

func checkURL(text string) error {
	for _, one := range strings.Split(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			var wrong *url.Error
			if errors.As(err, &wrong) {
				err = wrong.Err // without the URL, which may have a password
			}
			return inputf("the URL of the engine: %w", err)
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return inputf("%.200q is no URL of an engine: they begin with nats:// or tls://", u.Redacted())
		}
		if u.Hostname() == "" {
			return inputf("%.200q names no host", u.Redacted())
		}
	}
	return nil
}

// Redacted returns a URL for messages and documents: it has no passwords and tokens.
func Redacted(text string) string {
	var list []string
	for _, one := range strings.Split(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			continue
		}
		u.User = nil
		list = append(list, u.String())
	}
	return strings.Join(list, ",")
}

// security returns the options of TLS and of the credentials. A file that cannot be read is an
// *InputError, and not found out by the connection.
func (o *Options) security() ([]nats.Option, error) {
	var list []nats.Option
	if o.CA != "" {
		if err := readable(o.CA); err != nil {
			return nil, err
		}
		list = append(list, nats.RootCAs(o.CA))
	}
	if o.Cert != "" {
		if err := errors.Join(readable(o.Cert), readable(o.Key)); err != nil {
			return nil, err
		}
		list = append(list, nats.ClientCert(o.Cert, o.Key))
	}
	if o.Credentials == "" {
		return list, nil
	}
	if err := readable(o.Credentials); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(o.Credentials)
	if err != nil {
		return nil, &InputError{err}
	}
	if strings.Contains(string(text), "BEGIN NATS USER JWT") {
		return append(list, nats.UserCredentials(o.Credentials)), nil
	}
	seed, err := nats.NkeyOptionFromSeed(o.Credentials)
	if err != nil {
		return nil, inputf("%s has neither a NATS credential nor the seed of an nkey: %w", o.Credentials, err)
	}
	return append(list, seed), nil
}

// readable refuses files that are not regular, or larger than any credential.
func readable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return &InputError{err}
	case !info.Mode().IsRegular():
		return inputf("%s is no regular file", name)
	case info.Size() > mostKeyFile:
		return inputf("%s has %d bytes, more than any credential", name, info.Size())
	}
	f, err := os.Open(name)
	if err != nil {
		return &InputError{err}
	}
	return f.Close()
}

func inputf(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }
