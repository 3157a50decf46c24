package collect

import (
	"os"
	"path/filepath"
	"testing"

	"diagnose/image/object"
)

func TestIdentify(t *testing.T) {
	f, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if id, err := identify(f); err != nil || id.buildID != object.BuildIDOf("/bin/sh") || len(id.notes) == 0 {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestContainer(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for cgroup, want := range map[string]string{
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1f2e.slice/cri-containerd-" + id + ".scope": id,
		"/docker/" + id: id,
		"/machine.slice/libpod-" + id + ".scope/container": id,
		"/system.slice/server.service":                     "",
		"":                                                 "",
	} {
		if got := containerOf(cgroup); got != want {
			t.Errorf("%s: %q", cgroup, got)
		}
	}
}

// FuzzIdentify reads bytes as an object of a crashed process.
func FuzzIdentify(f *testing.F) {
	exe, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Skip("not supported here: there is no /bin/true")
	}
	f.Add(exe[:min(len(exe), 4096)])
	f.Add([]byte("\x7fELF"))
	path := filepath.Join(f.TempDir(), "object")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if id, err := identify(file); err == nil && (len(id.notes) > mostNotes || len(id.buildID) > 128) {
			t.Errorf("%+v", id)
		}
	})
}
