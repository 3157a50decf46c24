package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/BurntSushi/toml"
	"golang.org/x/sys/unix"

	"diagnose/fleet/collect/spool"
)

// Default places.
const (
	DefaultConfig = "/etc/diagnose/collect.toml"
	DefaultSpool  = "/var/lib/diagnose/spool"
)

// Config is the configuration of the handler, which the kernel starts without an environment.
type Config struct {
	// Spool is the spool's directory.
	Spool string
	// Limits bound the spool.
	Limits spool.Limits
	// Time bounds the handling of one core: a hostile file system may never answer.
	Time time.Duration
}

// configFile is the form of the file. Sizes are in MiB.
type configFile struct {
	Spool  string `toml:"spool"`
	Time   string `toml:"time"`
	Limits struct {
		Window      string `toml:"window"`
		ProgramRate int    `toml:"program_rate"`
		TotalRate   int    `toml:"total_rate"`
		ProgramSize int64  `toml:"program_mib"`
		TotalSize   int64  `toml:"total_mib"`
		EntrySize   int64  `toml:"entry_mib"`
		FreeSize    int64  `toml:"free_mib"`
		Handlers    int    `toml:"handlers"`
	} `toml:"limits"`
}

// DefaultTime bounds the handling of a core unless the configuration says otherwise.
const DefaultTime = 5 * time.Minute

// Default is the configuration without a file.
func Default() Config {
	return Config{Spool: DefaultSpool, Limits: spool.DefaultLimits, Time: DefaultTime}
}

func (c *Config) file() *configFile {
	f := &configFile{Spool: c.Spool, Time: c.Time.String()}
	l := &f.Limits
	l.Window, l.ProgramRate, l.TotalRate, l.Handlers = c.Limits.Window.String(), c.Limits.ProgramRate, c.Limits.TotalRate, c.Limits.Handlers
	l.ProgramSize, l.TotalSize, l.EntrySize, l.FreeSize = c.Limits.ProgramBytes>>20, c.Limits.TotalBytes>>20, c.Limits.EntryBytes>>20, c.Limits.FreeBytes>>20
	return f
}

// Encode returns the configuration as the text of its file.
func (c *Config) Encode() ([]byte, error) {
	var b bytes.Buffer
	err := toml.NewEncoder(&b).Encode(c.file())
	return b.Bytes(), err
}

// ReadConfig reads a configuration. What it does not name has its default. A file that does not exist is
// the default; one that others may write is refused, because it names where the handler, which is
// root, writes.
func ReadConfig(path string) (Config, error) {
	c := Default()
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	defer f.Close()
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if info.Mode&0o022 != 0 || int(info.Uid) != os.Geteuid() && info.Uid != 0 {
		return c, fmt.Errorf("%s: others may write it (owner %d, mode %#o)", path, info.Uid, info.Mode&0o777)
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err == nil {
		err = c.decode(string(text))
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

func (c *Config) decode(text string) error {
	f := c.file()
	meta, err := toml.Decode(text, f)
	if err != nil {
		return err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("there is no setting %v", unknown[0])
	}
	l := &f.Limits
	window, err := time.ParseDuration(l.Window)
	if err != nil {
		return fmt.Errorf("limits.window: %w", err)
	}
	if c.Time, err = time.ParseDuration(f.Time); err != nil || c.Time <= 0 {
		return fmt.Errorf("time: %q is none above zero", f.Time)
	}
	const most = 1 << 30 // MiB
	for _, size := range []int64{l.ProgramSize, l.TotalSize, l.EntrySize, l.FreeSize} {
		if size < 0 || size > most {
			return fmt.Errorf("limits: a size of %d MiB", size)
		}
	}
	c.Spool = f.Spool
	c.Limits = spool.Limits{Window: window, ProgramRate: l.ProgramRate, TotalRate: l.TotalRate, Handlers: l.Handlers,
		ProgramBytes: l.ProgramSize << 20, TotalBytes: l.TotalSize << 20, EntryBytes: l.EntrySize << 20, FreeBytes: l.FreeSize << 20}
	return c.Limits.Check()
}
