package main

import (
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// secretsProgram has secrets, all of which begin with "Zeno", at each place that a report shows: in
// variables and members, in strings within strings, in lines of source, in the bytes after a heap
// object's end. With FIXED the values only look like secrets.
const secretsProgram = `
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>
struct login { const char *user, *secret, *token; char password[16]; unsigned char access_key[8]; int *missing; };
static int use(struct login *l, const char *request, const char *config, const char *url, const char *place) {
	char cut[16];
	snprintf(cut, sizeof cut, "was %s", l->password);
	char *heap = malloc(20);
	sprintf(heap, "password=%s", l->password); /* past the end */
	puts(cut); puts(place); puts(heap);
	return *l->missing + request[0] + config[0] + url[0] + cut[0]; /* TODO: password=Zeno4comment */
}
#ifdef FIXED
#define SECRET(none, secret) none
#else
#define SECRET(none, secret) secret
#endif
int main(void) {
	struct login l = {"bob", SECRET("%s", "Zeno1member!"), SECRET("while", "Zeno2T0k3n"), SECRET("", "Zeno3password"), SECRET("", "Zeno5ab"), NULL};
	const char *request = SECRET("passwd: cannot open file", "{\"body\": \"{\\\"client_secret\\\": \\\"Zeno 6 nested\\\"}\", \"n\": 1}");
	const char *config = SECRET("token: expected identifier", "db:\n  user: bob\n  db_password: Zeno7yaml\n");
	const char *url = SECRET("http://host:8080/bob@home", "amqp://bob:Zeno8url@host/");
	struct { const char *pass, *key; wchar_t wide[10]; const char *argv[3]; } odd =
		{SECRET("%s", "Zeno9pass"), SECRET("host", "ZenoA1b2C3d4E5f6"), SECRET(L"page", L"pw=ZenoBw"), {"mysql", "-uroot", SECRET("-p", "-pZenoCmysql")}};
	printf("%p\n", (void *)&odd);
	return use(&l, request, config, url, request + SECRET(0, 34));
}
`

func TestSecretsOfPrograms(t *testing.T) {
	marks := regexp.MustCompile(`<[^>]*>|[ \[|]`)
	number := hex.EncodeToString([]byte("Zeno3"))
	for _, flags := range [][]string{{"-O0"}, {"-O2", "-fno-inline"}} {
		exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: secretsProgram, Flags: append(flags, "-Wno-format-overflow")})
		core := crashtest.Core(t, exe, crashtest.Run{Env: underAgent(t)})
		for _, command := range []string{"crash", "heap"} {
			for _, format := range reports.Formats() {
				got := diagnose(t, nil, command, "--core", core, "--format", format)
				if got.status != exitOK {
					t.Fatalf("%s: status %d: %s", command, got.status, got.stderr)
				}
				for _, text := range []string{got.stdout, got.stderr} {
					if i := strings.Index(text, "Zeno"); i >= 0 {
						t.Errorf("%v %s --format %s: %q", flags, command, format, text[max(0, i-60):min(len(text), i+20)])
					}
					if strings.Contains(marks.ReplaceAllString(text, ""), "90,101,110,111") {
						t.Errorf("%v %s --format %s shows the codes of a secret", flags, command, format)
					}
					if strings.Contains(marks.ReplaceAllString(text, ""), number) {
						t.Errorf("%v %s --format %s shows bytes of a secret", flags, command, format)
					}
				}
			}
		}
		open := diagnose(t, nil, "crash", "--core", core, "--show-secrets").stdout
		for _, secret := range []string{"Zeno9", "ZenoA", "90, [4] = 101", "ZenoC", "Zeno1", "Zeno2", "Zeno3", "Zeno4", "Zeno 6", "Zeno7", "Zeno8"} {
			if flags[0] == "-O0" && !strings.Contains(open, secret) {
				t.Errorf("the report has no %s, so it tests nothing:\n%s", secret, open)
			}
		}
	}
}

// A message on standard error has no secrets from the names of files, arguments and programs.
func TestSecretsInMessages(t *testing.T) {
	for _, args := range [][]string{
		{"crash", "--core", "/nonexistent/x?password=Zeno1&y=2"}, {"crash", "--core", "/nonexistent/postgres://bob:Zeno2@h"}, {"run", "--", "/nonexistent/prog?pass=Zeno3"},
		{"record", "--", "/nonexistent/password=Zeno4"}, {"replay", "/nonexistent/token=Zeno5a1b2"}, {"crash", "/nonexistent/x", "--password=Zeno6"},
	} {
		got := diagnose(t, nil, args...)
		if got.status == exitOK || got.stderr == "" || strings.Contains(got.stderr, "Zeno") {
			t.Errorf("%q: status %d: %s", args, got.status, got.stderr)
		}
	}
}

// A value that only looks like a secret is shown.
func TestNoSecretsOfPrograms(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: strings.Replace(secretsProgram, "/* TODO: password=Zeno4comment */", "", 1), Flags: []string{"-O0", "-DFIXED"}})
	core := crashtest.Core(t, exe, crashtest.Run{})
	got := diagnose(t, nil, "crash", "--core", core)
	for _, want := range []string{`"passwd: cannot open file"`, `"token: expected identifier"`, `"http://host:8080/bob@home"`, `token = 0x`, `"while"`, `snprintf(cut, sizeof cut, "was %s", l->password);`, filepath.Base(exe)} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("%q is missing in\n%s", want, got.stdout)
		}
	}
	if i := strings.Index(got.stdout, "[redacted]"); i >= 0 {
		t.Errorf("replaced: %s", got.stdout[max(0, i-80):i+20])
	}
}
