package collect

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const examples = "../../examples/fleet"

func TestExampleUnits(t *testing.T) {
	to := t.TempDir()
	names, err := filepath.Glob(filepath.Join(examples, "systemd", "diagnose-collect*"))
	if err != nil || len(names) < 2 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	verifyUnits(t, to)
}

// daemonSet has the fields of the example that matter.
type daemonSet struct {
	Kind string
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				InitContainers []container `yaml:"initContainers"`
				Containers     []container
				Volumes        []struct {
					Name     string
					HostPath struct{ Path string } `yaml:"hostPath"`
				}
			}
		}
	}
}

type container struct {
	Name            string
	Command         []string
	SecurityContext struct{ Privileged bool }          `yaml:"securityContext"`
	VolumeMounts    []struct{ Name, MountPath string } `yaml:"volumeMounts"`
}

// TestExampleKubernetes: the manifest is whole, and its commands do what they should in a root like a
// node's.
func TestExampleKubernetes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(examples, "kubernetes", "collect.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var set daemonSet
	for decoder := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var one daemonSet
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if one.Kind == "DaemonSet" {
			set = one
		}
	}
	pod := set.Spec.Template
	if len(pod.Metadata.Labels) == 0 || len(pod.Spec.InitContainers) != 1 || len(pod.Spec.Containers) != 1 {
		t.Fatalf("%+v", set)
	}
	for k, v := range set.Spec.Selector.MatchLabels {
		if pod.Metadata.Labels[k] != v {
			t.Errorf("the pods have no label %s=%s", k, v)
		}
	}
	paths := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		paths[v.Name] = v.HostPath.Path
	}
	install, send := pod.Spec.InitContainers[0], pod.Spec.Containers[0]
	if !install.SecurityContext.Privileged || send.SecurityContext.Privileged || paths["host"] != "/" || paths["spool"] != filepath.Dir(DefaultSpool) {
		t.Errorf("%+v, %+v, %v", install, send, paths)
	}
	for _, c := range []container{install, send} {
		for _, m := range c.VolumeMounts {
			if _, ok := paths[m.Name]; !ok {
				t.Errorf("%s: there is no volume %s", c.Name, m.Name)
			}
		}
	}
	runInstall(t, install.Command)
}

// runInstall runs the script of the first container, with the root of a host in place of /host, and
// compares what the handler's line would be.
func runInstall(t *testing.T, command []string) {
	t.Helper()
	i := host(t, "core", "0")
	program := filepath.Join(t.TempDir(), "diagnose")
	script := "#!/bin/sh\necho \"$@\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/host", i.Root, "/diagnose collect", program+" collect", "cp /diagnose", "cp "+program).Replace(command[len(command)-1])
	out, err := exec.Command("sh", "-ec", text).CombinedOutput()
	want := "collect install --root " + i.Root + " --program /opt/diagnose/diagnose"
	if err != nil || !strings.HasPrefix(string(out), want) {
		t.Fatalf("%v: %s", err, out)
	}
	i.Program = "/opt/diagnose/diagnose"
	if err := i.Install(); err != nil {
		t.Error(err)
	}
}
