package jemalloc_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/jemalloc"
	"diagnose/internal/crashtest"
)

// The keys that a server of the test has: mostKeys are set, every third is deleted.
const mostKeys = 12000

// TestRedis: every object that the dictionary of a redis-server leads to is in use, and begins where the
// dictionary says. The server dies of its own fault and of a signal from outside.
func TestRedis(t *testing.T) {
	exe, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	for _, outside := range []bool{false, true} {
		t.Run(fmt.Sprintf("outside=%v", outside), func(t *testing.T) {
			dir := t.TempDir()
			socket := filepath.Join(dir, "s")
			failed := make(chan error, 1)
			go func() { failed <- work(socket, outside) }()
			core := crashtest.Core(t, exe, crashtest.Run{Limit: time.Minute, Args: []string{"--port", "0", "--unixsocket", socket, "--save", "",
				"--crash-log-enabled", "no", "--enable-debug-command", "yes"}})
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			p, err := image.OpenCore(core, image.Options{Exe: exe})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { p.Close() })
			h, err := jemalloc.Open(p)
			if err != nil {
				t.Skipf("this redis-server has no jemalloc that is known: %v", err)
			}
			d := dictionary{t: t, p: p, h: h}
			if keys := d.find(mostKeys - mostKeys/3); keys != mostKeys-mostKeys/3 || d.wrong > 0 {
				t.Errorf("%d keys; %d objects, %d wrong", keys, d.objects, d.wrong)
			}
			t.Logf("%d objects in use", d.objects)
		})
	}
}

// work fills the server and ends it.
func work(socket string, outside bool) error {
	var c net.Conn
	var err error
	for range 300 {
		if c, err = net.Dial("unix", socket); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	ask := func(text string) (string, error) {
		if _, err := fmt.Fprintf(c, "%s\r\n", text); err != nil {
			return "", err
		}
		return r.ReadString('\n')
	}
	for i := range mostKeys {
		if _, err := ask(fmt.Sprintf("SET key:%d %s", i, strings.Repeat("v", 50+i%700))); err != nil {
			return err
		}
	}
	for i := 0; i < mostKeys; i += 3 {
		if _, err := ask(fmt.Sprintf("DEL key:%d", i)); err != nil {
			return err
		}
	}
	if !outside {
		_, _ = ask("DEBUG SEGFAULT") // no answer comes
		return nil
	}
	if _, err := ask("INFO server"); err != nil {
		return err
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return err
		}
		if text, ok := strings.CutPrefix(line, "process_id:"); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
			process, err := os.FindProcess(pid)
			if err != nil {
				return err
			}
			return process.Signal(syscall.SIGSEGV)
		}
	}
}

// dictionary walks the main dictionary of redis 7.0 (src/dict.h, struct dict and dictEntry; src/server.h, redisServer.db).
type dictionary struct {
	t              *testing.T
	p              *image.Process
	h              *jemalloc.Heap
	objects, wrong int
}

func (d *dictionary) word(at uint64) uint64 {
	v, err := image.Uint64(d.p, evidence.Addr(at))
	if err != nil {
		return 0
	}
	return v
}

// find finds the dictionary with a number of keys among the pointers of the server's state, and checks its objects. It
// returns how many entries it has.
func (d *dictionary) find(keys int) int {
	server, found := d.p.SymbolNamed("server")
	if !found {
		d.t.Skip("this redis-server does not export its state")
	}
	for off := uint64(0); off+8 <= server.Size; off += 8 {
		dict := d.word(d.word(uint64(server.Addr) + off))
		if d.word(dict+24)+d.word(dict+32) != uint64(keys) || d.word(dict+8) == 0 {
			continue
		}
		count := 0
		for i := range uint64(2) {
			table := d.word(dict + 8 + 8*i)
			exponent := d.word(dict+48) >> (8 * (2 + i)) & 0xff // ht_size_exp, after pauserehash
			if table == 0 || exponent > 30 {
				continue
			}
			d.live(table, true)
			for bucket := range uint64(1) << exponent {
				for e := d.word(table + 8*bucket); e != 0; e = d.word(e + 16) {
					count++
					d.live(e, true)
					d.live(d.word(e), false)
					d.live(d.word(e+8), true)
				}
			}
		}
		return count
	}
	return 0
}

// live checks that an object in use is at an address, at whose start.
func (d *dictionary) live(at uint64, start bool) {
	d.objects++
	o, found := d.h.At(evidence.Addr(at))
	if !found || o.State != evidence.ChunkInUse || start && o.Start != evidence.Addr(at) {
		if d.wrong++; d.wrong < 10 {
			d.t.Errorf("%#x: %+v, %v", at, o, found)
		}
	}
}
