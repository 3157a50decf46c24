package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"diagnose/corpus"
	"diagnose/fleet/engine"
	"diagnose/fleet/page"
	"diagnose/internal/privatefile"
	"diagnose/reports"
)

type serveFlags struct {
	corpusFlags
	suppressFlag
	redactFlag
	listen, tokenFile string
	hosts             []string
	certificate, key  string
	engine            engineFlags
}

func newServe() *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Show a corpus to a team as web pages",
		Long: `serve answers requests of browsers about a corpus: which causes are new or back,
causes by program, version, host and day, flaky tests and the commit they began with,
reports, all failures, a search, and downloads. /metrics has counts in the format of
OpenMetrics. docs/serve.md describes the pages.

Nothing but labels can be changed. Secrets that reports recognise are replaced, and
what --redact says as well, but not in downloads, which have the memory of processes.

It listens on this machine only: a proxy before it asks for names and passwords, and
--host says by which name readers come. With --token-file readers log in with the
token, and programs send it as 'Authorization: Bearer TOKEN'; then --listen takes any
address, and --tls-cert and --tls-key are the server's own.

With --engine, or DIAGNOSE_ENGINE in the environment, the corpus is created if it does not
exist, and gets the failures of the team from the engine, every half minute.

It ends with SIGINT or SIGTERM.

The corpus is the directory that --corpus names, or else the environment's
` + corpusVariable + `, or else ./corpus.
` + engineHelp + `
Exit status:

      0  it was ended
      1  it could not listen, or failed
      2  the command line is wrong
      3  there is no such corpus, or the engine does not answer`,
		Example: `  diagnose serve --corpus /srv/diagnose/corpus
  diagnose serve --corpus /srv/diagnose/corpus --host failures.example.org
  diagnose serve --corpus /var/cache/diagnose --engine tls://engine.example:4222 --team web
  diagnose serve --listen 0.0.0.0:8420 --token-file /etc/diagnose/page.token --tls-cert cert.pem --tls-key key.pem`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return f.serve(c) },
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8420", "`address` and port to listen on; port 0 is any that is free")
	flags.StringVar(&f.tokenFile, "token-file", "", "`file` with the token that readers have to know, which others cannot read")
	flags.StringArrayVar(&f.hosts, "host", nil, "`name` by which readers reach this server, in addition to those of this machine; may be repeated")
	flags.StringVar(&f.certificate, "tls-cert", "", "`file` with the server's certificate")
	flags.StringVar(&f.key, "tls-key", "", "`file` with the certificate's key")
	for _, name := range []string{"token-file", "tls-cert", "tls-key"} {
		must(c.MarkFlagFilename(name))
	}
	for _, name := range []string{"listen", "host"} {
		complete(c, name, cobra.NoFileCompletions)
	}
	f.engine.register(c, "engine", "`URL` of the engine whose failures are shown, as nats://HOST:4222")
	f.registerSuppressions(c)
	f.registerRedact(c)
	return c
}

func (f *serveFlags) serve(c *cobra.Command) error {
	if err := f.checkRedact(); err != nil {
		return err
	}
	if (f.certificate == "") != (f.key == "") {
		return usagef("--tls-cert and --tls-key come together")
	}
	known, err := f.readSuppressions()
	if err != nil {
		return err
	}
	opts := page.Options{Hosts: f.hosts, Known: known, Redact: f.redaction, Version: version(), Log: log.New(os.Stderr, "diagnose: ", log.LstdFlags)}
	if f.tokenFile != "" {
		if opts.Token, err = privatefile.ReadSecret(f.tokenFile, page.MostToken+2); err != nil {
			return usagef("--token-file: %w", err)
		}
		if len(opts.Token) == 0 {
			return usagef("--token-file: %s is empty", f.tokenFile)
		}
	}
	if err := f.checkListen(); err != nil {
		return err
	}
	if !f.pulls() {
		return f.with(c, corpus.Open, func(store *corpus.Corpus) error { return f.answer(c.Context(), store, opts) })
	}
	if _, err := f.engine.chosen(); err != nil {
		return err
	}
	return f.with(c, corpus.Create, func(store *corpus.Corpus) error {
		return f.engine.with(c.Context(), func(e *engine.Engine) error {
			ctx, stop := context.WithCancel(c.Context())
			var pulling sync.WaitGroup
			defer pulling.Wait()
			defer stop()
			pulling.Go(func() { follow(ctx, e, store, func(line string) { opts.Log.Print(reports.Message(line)) }) })
			return f.answer(c.Context(), store, opts)
		})
	})
}

// answer serves a corpus until ctx ends.
func (f *serveFlags) answer(ctx context.Context, store *corpus.Corpus, opts page.Options) error {
	opts.Corpus = store
	server, err := page.New(opts)
	if err != nil {
		return usagef("--token-file: %w", err)
	}
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	scheme := "http"
	if f.certificate != "" {
		scheme = "https"
	}
	say(fmt.Sprintf("%s is at %s://%s/", store.Dir, scheme, l.Addr()))
	return server.Serve(ctx, l, f.certificate, f.key)
}

// checkListen refuses to show failures to a network without a token.
func (f *serveFlags) checkListen() error {
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return usagef("--listen takes an address and a port, as in 127.0.0.1:8420: %w", err)
	}
	ip := net.ParseIP(host)
	if host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	if f.tokenFile == "" {
		return usagef("--listen %s can be reached from other machines, and so needs --token-file; without one, listen on 127.0.0.1 and have a proxy ask for names and passwords", f.listen)
	}
	if f.certificate == "" {
		say("the token is sent over the network as it is: --tls-cert and --tls-key, or a proxy that speaks TLS, hide it")
	}
	return nil
}
