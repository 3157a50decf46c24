package analysis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestHierarchyOf(t *testing.T) {
	const (
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n32 23 0:28 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
		part    = "33 23 0:26 /docker/ab /mnt/with\\040space rw - cgroup2 cgroup rw\n"
	)
	for _, x := range []struct{ mounts, groups, mount, own string }{
		{unified, "0::/system.slice/night.service\n", "/sys/fs/cgroup", "/sys/fs/cgroup/system.slice/night.service"},
		{unified, "0::/\n", "/sys/fs/cgroup", "/sys/fs/cgroup"},
		{hybrid, "4:memory:/a\n0::/b\n", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/b"},
		{part, "0::/docker/ab/c\n", "/mnt/with space", "/mnt/with space/c"},
		{part + unified, "0::/other\n", "/sys/fs/cgroup", "/sys/fs/cgroup/other"},
		{part, "0::/docker\n", "", ""},           // above the mounted part
		{unified, "0::/../elsewhere\n", "", ""},  // in another name space
		{unified, "4:memory:/a\n", "", ""},       // only version 1
		{"a b c - cgroup2\n", "0::/a\n", "", ""}, // cut off
		{"", "", "", ""},
	} {
		h, err := hierarchyOf(x.mounts, x.groups)
		var no *UnsupportedError
		if x.mount == "" {
			if !errors.As(err, &no) {
				t.Errorf("%q in %q: %+v, %v", x.groups, x.mounts, h, err)
			}
			continue
		}
		if err != nil || h.mount != x.mount || h.own != x.own {
			t.Errorf("%q in %q: %+v, %v", x.groups, x.mounts, h, err)
		}
	}
}

// groupTree is directories with the files of control groups. Writes are only noted.
type groupTree struct {
	hierarchy
	wrote []string
}

func newGroupTree(t *testing.T, own string, files map[string]string) *groupTree {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := &groupTree{hierarchy: hierarchy{mount: dir, own: filepath.Join(dir, own)}}
	x.write = func(name, text string) error {
		inside, err := filepath.Rel(dir, name)
		x.wrote = append(x.wrote, inside+" "+text)
		return err
	}
	return x
}

// give marks a group as delegated, as systemd does.
func (x *groupTree) give(t *testing.T, dir string) {
	t.Helper()
	err := unix.Setxattr(filepath.Join(x.mount, dir), "user.delegate", []byte("1"), 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Skip(&UnsupportedError{"the file system of temporary files has no attributes"})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Groups are made in a group delegated to this process, and nowhere else.
func TestWhereControlGroupsAreMade(t *testing.T) {
	me := strconv.Itoa(os.Getpid())
	service := func(procs string) map[string]string {
		return map[string]string{"cgroup.controllers": "cpu memory", "cgroup.subtree_control": "cpu memory",
			"s/cgroup.controllers": "cpu memory pids\n", "s/cgroup.subtree_control": "\n", "s/cgroup.type": "domain\n", "s/cgroup.procs": procs}
	}
	mine, name := service(me+"\n"), "s/"+groupPrefix+me
	below := service("")
	below["s/supervisor/cgroup.controllers"], below["s/supervisor/cgroup.subtree_control"] = "", ""
	none := service(me)
	none["s/cgroup.controllers"] = "cpu pids"
	for _, x := range []struct {
		name, own, given string
		files            map[string]string
		says             string // why not
		wrote            []string
	}{
		{"mine", "s", "s", mine, "", []string{name + "-self/cgroup.procs 0", "s/cgroup.subtree_control +memory", name + "-1/memory.max 1073741824"}},
		{"in a group below", "s/supervisor", "s/supervisor", below, "", []string{"s/cgroup.subtree_control +memory", name + "-1/memory.max 1073741824"}},
		{"not given", "s", "", mine, "Delegate=yes", nil},
		{"with others", "s", "s", service("1\n" + me + "\n"), "other processes are in", nil},
		{"no controller", "s", "s", none, "no memory controller", nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			if os.Geteuid() != 0 && x.name == "not given" {
				t.Skip(&UnsupportedError{"what another user owns cannot be made by this one"})
			}
			tree := newGroupTree(t, x.own, x.files)
			for dir := x.given; dir != "" && dir != "."; dir = filepath.Dir(dir) {
				tree.give(t, dir)
			}
			g, err := tree.open()
			var no *UnsupportedError
			if x.says != "" {
				if !errors.As(err, &no) || !strings.Contains(err.Error(), x.says) || len(tree.wrote) != 0 {
					t.Errorf("%v, wrote %q", err, tree.wrote)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range x.wrote {
				if !slices.Contains(tree.wrote, w) {
					t.Errorf("%q is not in %q", w, tree.wrote)
				}
			}
			g.close()
			if last := tree.wrote[len(tree.wrote)-1]; !strings.HasSuffix(last, "-memory") && last != "s/cgroup.procs 0" {
				t.Errorf("it is left as %q", tree.wrote)
			}
			if left, _ := filepath.Glob(filepath.Join(tree.mount, "s", groupPrefix+"*")); len(left) != 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// The kernel says why it killed a process.
func TestKilledForMemory(t *testing.T) {
	for text, want := range map[string]struct{ budget, outside, fails bool }{
		"low 0\nhigh 0\nmax 9\noom 0\noom_kill 0\noom_group_kill 0\n": {},
		"low 0\nmax 9\noom 1\noom_kill 2\n":                           {budget: true},
		"low 0\nmax 0\noom 0\noom_kill 1\n":                           {outside: true},
		"low 0\nmax 0\noom 0\n":                                       {fails: true},
		"oom x\noom_kill 0\n":                                         {fails: true},
	} {
		c := &controlGroup{dir: t.TempDir()}
		if err := os.WriteFile(filepath.Join(c.dir, "memory.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if budget, outside, err := c.killed(); budget != want.budget || outside != want.outside || (err != nil) != want.fails {
			t.Errorf("%q: %v, %v, %v", text, budget, outside, err)
		}
	}
	if _, _, err := (&controlGroup{dir: filepath.Join(t.TempDir(), "gone")}).killed(); err == nil {
		t.Error("what cannot be read is taken for nothing")
	}
}

// groupsHere returns real groups.
func groupsHere(t *testing.T) *controlGroups {
	t.Helper()
	g, err := openControlGroups()
	var no *UnsupportedError
	if errors.As(err, &no) {
		t.Skip(no)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g
}

// The kernel kills a process that needs more than its group has, and no others. Nothing of a
// group is left when it is closed.
func TestControlGroup(t *testing.T) {
	groups := groupsHere(t)
	run := func(script string, memory int64, time time.Duration) *ending {
		t.Helper()
		group, err := groups.new(memory)
		if err != nil {
			t.Fatal(err)
		}
		p := process{args: []string{"/proc/self/exe", script}, environ: append(os.Environ(), "ANALYSIS_TEST_USE="+script), dir: t.TempDir(), time: time, memory: memory, group: group}
		end, err := p.runToEnd(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		group.close()
		if _, err := os.Stat(group.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", group.dir, err)
		}
		return end
	}
	if end := run("eat", 64<<20, time.Minute); !end.tooLarge || end.tooLong || end.starved || end.memory < 64<<20 {
		t.Errorf("%+v", end)
	}
	if end := run("rest", 64<<20, time.Minute); end.tooLarge || end.status != 7 {
		t.Errorf("%+v", end)
	}
}
