package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// work is what a program does when it gets SIGSEGV: arguments of bash's exec, in an empty folder.
// {built} is the folder of bench/truth's programs, input a file of a few megabytes of text there.
type work struct{ name, command string }

var works = []work{
	// with call sites in the C library alone
	{"awk", "mawk '{for(i=0;i<50;i++)n[$1%9]+=length($0)} END{print n[1]}' input"},
	{"bash", "bash -c 'while :; do x=$(echo a b c | cat); read y < input; done'"},
	{"clang", "clang-14 -cc1 -O2 -emit-obj code.c -o code.o"},
	{"cc1plus", "$(g++ -print-prog-name=cc1plus) -O2 -quiet code.cc -o code.s"},
	{"curl", "curl -s telnet://127.0.0.1:1/ --retry 9 --retry-all-errors"},
	{"ffmpeg", "ffmpeg -v quiet -f lavfi -i testsrc=size=320x240:rate=25 -t 999 -c:v mpeg4 -f null -"},
	{"find", "find / -xdev -name '*.q'"},
	{"gawk", "gawk '{gsub(/1/,\"x\"); n+=length($0)} END{print n}' input input input"},
	{"gcc", "$(gcc -print-prog-name=cc1) -O2 -quiet code.c -o code.s"},
	{"gdb", "gdb -nx -batch -iex 'set debuginfod enabled off' -ex 'python\nimport json\nwhile True: json.dumps(list(range(999)))'"},
	{"git", "git hash-object --stdin-paths < paths"},
	{"grep", "grep -cE '(1.*7.*3|9+8+7+).*(12|34)+$' input input"},
	{"gzip", "gzip -9kf input"},
	{"imagemagick", "convert -size 1500x1500 plasma:fractal -blur 0x9 -resize 700x900 out.png"},
	{"java", "java -Xint -cp . Main.java"},
	{"jq", "jq -s 'map(tostring|length)|add' input"},
	{"lua", "lua5.4 -e 'local t={} for i=1,1e9 do t[i%1000]=tostring(i)..\"x\" table.sort({3,1,2}) end'"},
	{"make", "make -sf loop.mk"},
	{"md5sum", "md5sum /dev/zero"},
	{"node", "node -e 'let t=[];for(let i=0;;i++){t[i%1000]=JSON.stringify({i})}'"},
	{"objdump", "objdump -d /usr/bin/gdb"},
	{"openssl", "openssl speed -seconds 5 sha256"},
	{"perl", "perl -e 'for(;;){my %h=map{$_=>\"v$_\"}1..500; join(\",\",sort keys %h)=~/1(2+)3/g}'"},
	{"python", "/usr/bin/python3 -c 'import json\nwhile 1: json.loads(json.dumps({str(i):[i]*9 for i in range(99)}))'"},
	{"redis", "redis-server --port 0 --save '' --appendonly no"},
	{"ruby", "ruby -e 'loop{(1..999).map(&:to_s).sort.join.gsub(/12/,\"x\")}'"},
	{"rustc", "rustc -O --crate-type lib code.rs"},
	{"sed", "sed -E 's/([0-9])([0-9])/\\2\\1/g;s/(1+2*)+/x/g' input"},
	{"sort", "sort -R --parallel=2 input input input"},
	{"sqlite", "sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c) select sum(length(printf(\"%d\",x))) from c'"},
	{"tar", "tar czf out.tgz /usr/include"},
	{"tclsh", "tclsh script.tcl"},
	{"vim", "vim -es -u NONE -c 'while 1 | call sort(range(99)) | endwhile'"},
	{"xz", "xz -9kfT2 input"},
	{"zstd", "zstd -19 -T2 -kqf input"},
	// with call sites of their own
	{"bc -g", "{built}/bc/O2/bc/bc -lq loop.bc"},
	{"ed -g", "{built}/ed/O2/ed -s input < commands.ed"},
	{"gzip -g", "{built}/gzip/O2/gzip -9kfc input"},
	{"libyaml -g", "{built}/libyaml/O2/truth-program long.yaml"},
	{"jansson -g", "{built}/jansson/O2/truth-program long.json"},
	{"mujs -g", "{built}/mujs/O2/truth-program script.js"},
	{"nasm -g", "{built}/nasm/O2/nasm -O9 -f bin -o out.bin code.asm"},
	{"pcre2 -g", "{built}/pcre2/O2/pcre2test -q patterns"},
	{"sqlite -g", "{built}/sqlite3/O2/sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c) select sum(length(printf(\"%d\",x))) from c'"},
}

// inputs are the files that the programs read.
var inputs = map[string]string{
	"input":       strings.Repeat("1234 5678 9101 1121 987 34\n7 8 9 1 2 3 4 98712 12\n", 60_000),
	"paths":       strings.Repeat("input\n", 2000),
	"code.c":      "int t[64];\n" + functions("int f%d(int n) { int s = n; for (int i = 0; i < n; i++) { switch (s %% 7) { case 1: s += t[i]; break; case 3: s *= i; break; default: t[s & 63]--; } } return s; }\n"),
	"code.cc":     "#include <map>\n#include <string>\n#include <vector>\n" + functions("std::map<int, std::string> f%d(int n) { std::map<int, std::string> m; for (int i = 0; i < n; i++) m[i] += std::to_string(i); return m; }\n"),
	"code.rs":     functions("pub fn f%d(n: u64) -> Vec<String> { (0..n).filter(|x| x %% 3 == 1).map(|x| format!(\"{}\", x * n)).collect() }\n"),
	"Main.java":   "public class Main { public static void main(String[] a) { var m = new java.util.TreeMap<Integer, String>(); for (int i = 0; ; i++) m.merge(i % 999, \"\" + i, (x, y) -> y + i % 7); } }\n",
	"loop.mk":     "all: $(foreach i,$(shell seq 200000),x$i)\nx%:;@:\n.PHONY: all\n",
	"code.asm":    "bits 64\n" + functions("l%[1]d: mov rax, [rbx+%[1]d]\njnz l%[1]d\njmp l0\n%%assign x %[1]d*3\ndq x, l%[1]d\n"),
	"long.yaml":   strings.Repeat("- {a: [1, 2, 'three'], \"b\": !!str four}\n", 200_000),
	"long.json":   "[" + strings.Repeat("{\"a\": [1, 2.5e3, \"three\\u0041\"], \"b\": {\"c\": null}}, ", 200_000) + "0]",
	"loop.bc":     "while (1) { x = l(7) * a(3) / sqrt(17) + e(2) }\n",
	"commands.ed": strings.Repeat("1,$s/1/x/g\n1,$s/x/1/g\n", 1000),
	"script.js":   "var t = []; for (var i = 0; ; i++) { t[i % 1000] = JSON.stringify({i: i, s: String(i).replace(/1/g, 'x')}); if (i % 100 == 0) t.sort(); }\n",
	"script.tcl":  "while 1 { set l [lsort [split [string repeat {3 1 2 } 99]]]; regexp {1(2+)3} $l; expr {[llength $l] * 3} }\n",
	"patterns":    strings.Repeat("/(a+|b+)*c([^d]+)e(?<=x.)|(?i)q(?:w|e)+r/\n    aaaabbbbaaaabbbbaaaacfffffxe\n    aaaaabbbbbaaaaabbbbb\n", 20_000),
}

func functions(form string) string {
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, form, i)
	}
	return b.String()
}

// errEnded says that a program had ended before its moment.
var errEnded = errors.New("the program ends too soon")

// crash runs the program in the folder, sends SIGSEGV at a random moment, and returns the core.
func (w work) crash(dir, built string, moment func() time.Duration) (string, error) {
	for name, text := range inputs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	for range 20 {
		if err := w.killOnce(dir, built, moment()); err != nil {
			if errors.Is(err, errEnded) {
				continue
			}
			return "", err
		}
		cores, err := filepath.Glob(filepath.Join(dir, "core*"))
		if err != nil || len(cores) != 1 {
			return "", fmt.Errorf("%d cores: is core_pattern a name? %v", len(cores), err)
		}
		return cores[0], nil
	}
	return "", errEnded
}

func (w work) killOnce(dir, built string, after time.Duration) error {
	cmd := exec.Command("bash", "-c", "ulimit -c unlimited; exec "+strings.ReplaceAll(w.command, "{built}", built))
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(syscall.SIGSEGV) // of a program that has ended Wait tells
	time.AfterFunc(20*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return errEnded
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); !ok || !status.CoreDump() {
		return errEnded
	}
	return nil
}
