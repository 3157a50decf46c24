package main

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/cobra"

	"diagnose/fleet/engine"
)

// engineVariable names the engine that is used where no flag does.
const engineVariable = "DIAGNOSE_ENGINE"

// engineURLUsage is the usage of --engine.
const engineURLUsage = "`URL` of the engine, as nats://HOST:4222 or tls://HOST:4222; several of one cluster with commas"

// engineHelp belongs to the help of each command that uses an engine.
const engineHelp = `
Environment, for flags that are not given:

    DIAGNOSE_ENGINE              --engine
` + engineUserHelp

// engineUserHelp is the part that says as whom the engine is used.
const engineUserHelp = `    DIAGNOSE_ENGINE_CREDENTIALS  --engine-credentials
    DIAGNOSE_ENGINE_CA           --engine-ca
    DIAGNOSE_ENGINE_CERT         --engine-cert
    DIAGNOSE_ENGINE_KEY          --engine-key
    DIAGNOSE_TEAM                --team
`

// engineFlags say which engine a command uses, and as whom.
type engineFlags struct {
	options engine.Options
	// urlFlag is the name of the flag with the URL.
	urlFlag string
}

// register adds the flags. The flag with the URL has the name that it has in this command.
func (f *engineFlags) register(c *cobra.Command, urlFlag, usage string) {
	f.urlFlag = urlFlag
	flags := c.Flags()
	flags.StringVar(&f.options.URL, urlFlag, "", usage)
	flags.StringVar(&f.options.Credentials, "engine-credentials", "", "`file` with a NATS credential, or the seed of an nkey")
	flags.StringVar(&f.options.CA, "engine-ca", "", "`file` with the certificates that the engine's is checked by")
	flags.StringVar(&f.options.Cert, "engine-cert", "", "`file` with a certificate for the engine")
	flags.StringVar(&f.options.Key, "engine-key", "", "`file` with the certificate's key")
	flags.StringVar(&f.options.Team, "team", "", "`name` of the team whose failures they are (default \"default\")")
	complete(c, urlFlag, cobra.NoFileCompletions)
	complete(c, "team", cobra.NoFileCompletions)
}

// chosen returns the options that the flags and the environment give.
func (f *engineFlags) chosen() (engine.Options, error) {
	o := f.options
	for name, field := range map[string]*string{
		engineVariable: &o.URL, "DIAGNOSE_ENGINE_CREDENTIALS": &o.Credentials, "DIAGNOSE_ENGINE_CA": &o.CA,
		"DIAGNOSE_ENGINE_CERT": &o.Cert, "DIAGNOSE_ENGINE_KEY": &o.Key, "DIAGNOSE_TEAM": &o.Team,
	} {
		*field = cmp.Or(*field, os.Getenv(name))
	}
	if o.URL == "" {
		return o, usagef("--%s is missing: give the URL of an engine, as nats://HOST:4222", f.urlFlag)
	}
	if err := o.Check(); err != nil {
		return o, usagef("--%s: %w", f.urlFlag, err)
	}
	return o, nil
}

// named reports whether an engine is named, by its flag or in the environment.
func (f *engineFlags) named() bool { return f.options.URL != "" || os.Getenv(engineVariable) != "" }

func (f *engineFlags) connect(ctx context.Context) (*engine.Engine, error) {
	o, err := f.chosen()
	if err != nil {
		return nil, err
	}
	return engine.Connect(ctx, o)
}

// with connects to the engine, for one use.
func (f *engineFlags) with(ctx context.Context, use func(*engine.Engine) error) error {
	e, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer e.Close()
	return use(e)
}
