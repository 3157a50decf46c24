package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"diagnose/corpus"
	"diagnose/internal/crashtest"
)

func exampleOf(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/examples", folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// acceptableArgs says why a command line without the program is not one of this build.
func acceptableArgs(args []string) error {
	c, rest, err := newRoot().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil && c.HasSubCommands() {
		err = fmt.Errorf("%q: there is no such command", args)
	}
	return err
}

// ciWorkflow is a workflow of GitHub Actions.
type ciWorkflow struct {
	Name string
	On   struct {
		Push     any
		Schedule []struct{ Cron string }
	}
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		If       string
		RunsOn   string `yaml:"runs-on"`
		Timeout  int    `yaml:"timeout-minutes"`
		Strategy struct {
			FailFast bool `yaml:"fail-fast"`
			Matrix   map[string][]string
		}
		Steps []step
	}
}

type ciPipeline struct {
	Variables   map[string]string
	Rates, Hunt struct {
		Parallel struct{ Matrix []map[string][]string }
		Rules    []struct{ If string }
		Timeout  string
		Script   []string
	}
}

// flakyHost has a program that fails in each third run.
func flakyHost(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	script, err := filepath.Abs("../../docs/examples/ci/record-flaky.sh")
	if err != nil {
		t.Fatal(err)
	}
	const program = `
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	int n = 0;
	FILE *f = fopen(argv[2], "r");
	if (f) { if (fscanf(f, "%d", &n) != 1) n = 0; fclose(f); }
	f = fopen(argv[2], "w");
	fprintf(f, "%d", n + 1);
	fclose(f);
	if (n % 3 == 1) abort();
	return 0;
}
`
	for name, text := range map[string]string{"checkout/tests.c": program, "bin/record-flaky.sh": "#!/bin/sh\nexec " + script + " \"$@\"\n"} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if status, out := h.sh(t, `make BUILD="$RUNNER_TEMP/build"`, map[string]string{"RUNNER_TEMP": h.dir}); status != 0 {
		t.Fatalf("%d: %s", status, out)
	}
	return h
}

// The script counts the runs of a test and keeps one recording, in a corpus or in an engine.
func TestExampleRecordFlaky(t *testing.T) {
	h := flakyHost(t)
	dir := filepath.Join(h.srv, "corpus")
	env := map[string]string{"RUNNER_TEMP": h.dir, "GITHUB_SHA": "00ff", "GITHUB_RUN_ID": "17", "DIAGNOSE_CORPUS": dir, "DIAGNOSE_ENGINE": ""}
	run := func(runs int) (int, string) {
		return h.sh(t, fmt.Sprintf(`record-flaky.sh queue %d "$RUNNER_TEMP/build/run-tests" queue "$RUNNER_TEMP/count"`, runs), env)
	}
	check := func(ended string, want map[string]string) {
		t.Helper()
		c, err := corpus.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		list, err := c.List(t.Context(), corpus.Filter{Labels: want})
		if err != nil || len(list) != 1 || list[0].Ended != ended {
			t.Errorf("%v: %+v, %v", want, list, err)
		}
	}
	if status, out := run(5); status != 1 || !strings.Contains(out, "failed in 2 of 5 runs") {
		t.Fatalf("status %d: %s", status, out)
	}
	check("SIGABRT", map[string]string{"test": "queue", "commit": "00ff", "job": "17-queue", "runs": "5", "failed": "2"})
	env["GITHUB_RUN_ID"] = "18"
	if status, out := run(2); status != 0 || !strings.Contains(out, "failed in 0 of 2 runs") { // the sixth and the seventh
		t.Fatalf("status %d: %s", status, out)
	}
	check("passed", map[string]string{"test": "queue", "job": "18-queue", "runs": "2", "failed": "0"})
	env["GITHUB_RUN_ID"], env["DIAGNOSE_ENGINE"] = "19", listening(t)
	if status, out := run(1); status != 1 {
		t.Fatalf("status %d: %s", status, out)
	}
	if status, out := h.sh(t, "diagnose corpus pull", env); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	check("SIGABRT", map[string]string{"job": "19-queue", "runs": "1", "failed": "1"})
	if status, out := h.sh(t, `record-flaky.sh queue 2 "$RUNNER_TEMP/missing"`, env); status == 0 || status == 1 {
		t.Errorf("a program that is missing: status %d: %s", status, out)
	}
}

// The jobs have what GitHub's and GitLab's own forms have, and their lines run.
func TestExamplesOfCI(t *testing.T) {
	github, gitlab := exampleOf(t, "ci", "github.yml"), exampleOf(t, "ci", "gitlab.yml")
	accepted(t, github, 1)
	accepted(t, gitlab, 1)
	accepted(t, exampleOf(t, "ci", "record-flaky.sh"), 3)
	var w ciWorkflow
	decode(t, github, &w)
	var p ciPipeline
	decode(t, gitlab, &p)
	rates, hunt := w.Jobs["rates"], w.Jobs["hunt"]
	if len(rates.Steps) != 3 || len(hunt.Steps) != 3 || len(p.Rates.Script) != 2 || len(p.Hunt.Script) != 2 || !cronLine.MatchString(w.On.Schedule[0].Cron+" user command") {
		t.Fatalf("%+v, %+v", w, p)
	}
	h := flakyHost(t)
	env := map[string]string{"RUNNER_TEMP": h.dir, "CI_PROJECT_DIR": h.dir, "DIAGNOSE_ENGINE": listening(t), "DIAGNOSE_TEAM": w.Env["DIAGNOSE_TEAM"]}
	for _, x := range []struct{ script, commit string }{{hunt.Steps[2].Run, "GITHUB_SHA"}, {p.Hunt.Script[1], "CI_COMMIT_SHA"}} {
		script := strings.Replace(x.script, " --engine-credentials \"$RUNNER_TEMP/engine.creds\"", "", 1) // this server has no users
		script = strings.TrimSpace(script) + " all \"$RUNNER_TEMP/count\"\n"
		env[x.commit] = x.commit
		if status, out := h.sh(t, script, env); status != 134 || !strings.Contains(out, "it was pushed as") {
			t.Errorf("%s: status %d: %s", x.commit, status, out)
		}
	}
	dir := filepath.Join(h.srv, "corpus")
	if status, out := h.sh(t, "diagnose corpus pull --corpus "+dir, env); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	c, err := corpus.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, commit := range []string{"GITHUB_SHA", "CI_COMMIT_SHA"} {
		if list, err := c.List(t.Context(), corpus.Filter{Labels: map[string]string{"commit": commit, "test": "all"}}); err != nil || len(list) != 1 {
			t.Errorf("%s: %+v, %v", commit, list, err)
		}
	}
}

// The units are those of systemd, and start commands of this build.
func TestExamplesOfFleetUnits(t *testing.T) {
	units := []string{"diagnose-serve.service", "diagnose-worker@.service", "diagnose-engine.service"}
	for _, name := range units {
		command := strings.Fields(keysOf(exampleOf(t, "fleet", name))["ExecStart"])
		if command[0] != "/usr/local/bin/diagnose" {
			continue
		}
		if err := acceptableArgs(command[1:]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keysOf(exampleOf(t, "fleet", "diagnose-worker@.service"))["SuccessExitStatus"] != fmt.Sprint(exitInterrupted) {
		t.Error("a worker that is told to end fails")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(edit func(string) string) string {
		t.Helper()
		dir := t.TempDir()
		args := []string{"verify", "--man=no"}
		for _, name := range units {
			text := edit(exampleOf(t, "fleet", name))
			// systemd requires that the commands exist.
			text = strings.NewReplacer("/usr/local/bin/diagnose", exe, "/usr/local/bin/nats-server", exe).Replace(text)
			name = strings.Replace(name, "@.", "@1.", 1)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, filepath.Join(dir, name))
		}
		out, err := exec.Command(analyze, args...).CombinedOutput()
		var ours []string // systemd also complains about other units on this machine
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "diagnose-") {
				ours = append(ours, line)
			}
		}
		if err != nil {
			ours = append(ours, err.Error(), string(out))
		}
		return strings.Join(ours, "")
	}
	if says := verify(func(text string) string { return strings.Replace(text, "StateDirectory=", "StateDirectories=", 1) }); !strings.Contains(says, "StateDirectories") {
		t.Skip(&crashtest.UnsupportedError{What: "systemd-analyze does not check units here: " + says})
	}
	if says := verify(func(text string) string { return text }); says != "" {
		t.Error(says)
	}
}

type podVolume struct {
	Name   string
	Empty  map[string]string `yaml:"emptyDir"`
	Claim  map[string]string `yaml:"persistentVolumeClaim"`
	Secret map[string]any
}

// manifest is an object of Kubernetes, as far as the example uses it.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name, Namespace string }
	Spec       struct {
		Replicas    int
		Strategy    struct{ Type string }
		Selector    map[string]any
		AccessModes []string `yaml:"accessModes"`
		Resources   map[string]map[string]string
		Ports       []map[string]any
		Template    podTemplate
		Schedule    string
		Concurrency string `yaml:"concurrencyPolicy"`
		Job         struct {
			Spec struct {
				Backoff  int `yaml:"backoffLimit"`
				Template podTemplate
			}
		} `yaml:"jobTemplate"`
	}
}

type podTemplate struct {
	Metadata struct{ Labels map[string]string }
	Spec     struct {
		Restart    string `yaml:"restartPolicy"`
		Automount  *bool  `yaml:"automountServiceAccountToken"`
		Grace      int    `yaml:"terminationGracePeriodSeconds"`
		Affinity   map[string]any
		Security   map[string]any `yaml:"securityContext"`
		Containers []struct {
			Name, Image string
			Args        []string
			Env         []struct{ Name, Value string }
			Ports       []map[string]any
			Ready       map[string]any `yaml:"readinessProbe"`
			Security    map[string]any `yaml:"securityContext"`
			Resources   map[string]map[string]string
			Mounts      []struct {
				Name string
				Path string `yaml:"mountPath"`
				Read bool   `yaml:"readOnly"`
			} `yaml:"volumeMounts"`
		}
		Volumes []podVolume
	}
}

// The manifest's commands are those of this build, and its parts fit together.
func TestExampleOfKubernetes(t *testing.T) {
	d := yaml.NewDecoder(strings.NewReader(exampleOf(t, "fleet", "kubernetes.yml")))
	d.KnownFields(true)
	kinds := map[string]int{}
	claims := map[string]bool{}
	for {
		var m manifest
		if err := d.Decode(&m); err != nil {
			if err.Error() == "EOF" {
				break
			}
			t.Fatal(err)
		}
		kinds[m.Kind]++
		if m.Kind == "PersistentVolumeClaim" {
			claims[m.Metadata.Name] = true
		}
		pod := &m.Spec.Template.Spec
		if m.Kind == "CronJob" {
			pod = &m.Spec.Job.Spec.Template.Spec
			if !cronLine.MatchString(m.Spec.Schedule + " user command") {
				t.Errorf("%q is no time", m.Spec.Schedule)
			}
		}
		for _, c := range pod.Containers {
			if err := acceptableArgs(c.Args); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			for _, mount := range c.Mounts {
				if !slices.ContainsFunc(pod.Volumes, func(v podVolume) bool {
					return v.Name == mount.Name && (v.Claim == nil || claims[v.Claim["claimName"]])
				}) {
					t.Errorf("%s: there is no volume %s", c.Name, mount.Name)
				}
			}
		}
		for k, v := range m.Spec.Template.Metadata.Labels {
			if match, ok := m.Spec.Selector["matchLabels"].(map[string]any); !ok || match[k] != v {
				t.Errorf("%s selects other pods than its own", m.Metadata.Name)
			}
		}
	}
	if kinds["Deployment"] != 2 || kinds["Service"] != 1 || kinds["PersistentVolumeClaim"] != 1 || kinds["CronJob"] != 1 {
		t.Errorf("%v", kinds)
	}
}
