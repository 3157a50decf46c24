package instrument

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// arguments has the parts of a compiler's command line that matter here.
type arguments struct {
	inputs                          int    // files to compile or to link, and libraries
	headers                         int    // of the inputs
	language                        string // of -x, for the inputs after it
	compiles                        string // the option that makes it stop before linking; "" if none does
	relocatable, noLibraries, debug bool
	traps                           bool   // sanitizers trap and do not call their runtime
	static, machine                 string // the option that says so; "" if none does
	sanitizers                      map[string]bool
}

// links tells whether the compiler makes a program or a shared library.
func (a *arguments) links() bool {
	return a.inputs > a.headers && a.compiles == "" && !a.relocatable
}

// takesValue are the options of gcc and clang whose value is the next argument.
// (gcc: gcc.texi, "Option Summary"; clang: Options.td, "Separate".)
var takesValue = setOf(`-o -x -I -L -D -U -A -B -F -T -u -z -e -l -h -include -imacros -isystem -iquote -idirafter -iprefix
	-iwithprefix -iwithprefixbefore -isysroot -imultilib -cxx-isystem -include-pch -MF -MT -MQ -MJ -Xlinker -Xassembler
	-Xpreprocessor -Xclang -Xanalyzer -Xarch_host -Xarch_device -mllvm -mthread-model -arch -target -aux-info -dumpbase
	-dumpbase-ext -dumpdir -wrapper --param -framework -gcc-toolchain --sysroot --include --imacros --output --language
	--entry --undefined --define-macro --undefine-macro --include-directory --library-directory -fplugin-arg -serialize-diagnostics
	-working-directory -install_name -segaddr -rpath -R`)

// stops are the options with which nothing is linked.
var stops = setOf(`-c -S -E -M -MM -fsyntax-only --compile --assemble --preprocess --dependencies --user-dependencies
	--precompile -emit-ast --analyze -emit-pch -verify-pch --emit-static-lib`)

var headerSuffixes = setOf(".h .hh .hp .hxx .hpp .HPP .h++ .tcc .H")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// mostNested bounds response files that name each other.
const mostNested = 200

func parse(args []string) (*arguments, error) {
	a := &arguments{sanitizers: map[string]bool{}}
	args, err := expand(args, 0)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(args); i++ {
		arg, value := args[i], ""
		if takesValue[arg] && i+1 < len(args) {
			i++
			value = args[i]
		}
		if arg == "--" {
			for _, name := range args[i+1:] {
				a.input(name)
			}
			break
		}
		a.addArgument(arg, value)
	}
	return a, nil
}

func (a *arguments) addArgument(arg, value string) {
	name, list, _ := strings.Cut(arg, "=")
	switch {
	case arg == "-" || !strings.HasPrefix(arg, "-"):
		a.input(arg)
	case arg == "-x" || arg == "--language":
		a.language = value
	case strings.HasPrefix(arg, "-x"):
		a.language = arg[2:]
	case name == "--language":
		a.language = list
	case strings.HasPrefix(arg, "-l"):
		a.inputs++
	case stops[arg]:
		a.compiles = arg
	case arg == "-r" || arg == "-Xlinker" && relocates(value) || strings.HasPrefix(arg, "-Wl,") && relocates(arg[4:]):
		a.relocatable = true
	case arg == "-nostdlib" || arg == "-nodefaultlibs" || arg == "--no-standard-libraries":
		a.noLibraries = true
	case arg == "-static" || arg == "--static" || arg == "-static-pie":
		a.static = arg
	case arg == "-m32" || arg == "-mx32" || arg == "-m16":
		a.machine = arg
	case arg == "-m64":
		a.machine = ""
	case name == "-fsanitize-trap" || arg == "-fsanitize-undefined-trap-on-error":
		a.traps = true
	case name == "-fsanitize" || name == "-fno-sanitize":
		for _, what := range strings.Split(list, ",") {
			a.sanitizers[what] = name == "-fsanitize"
		}
	case strings.HasPrefix(arg, "-g") && !strings.HasPrefix(arg, "-gcc-"):
		a.debug = true
	}
}

// relocates looks for -r among the options that are passed to the linker.
func relocates(options string) bool {
	for _, option := range strings.Split(options, ",") {
		if option == "-r" || option == "-i" || option == "--relocatable" {
			return true
		}
	}
	return false
}

func (a *arguments) input(name string) {
	a.inputs++
	if a.language == "" || a.language == "none" {
		if headerSuffixes[filepath.Ext(name)] {
			a.headers++
		}
	} else if strings.HasSuffix(a.language, "-header") {
		a.headers++
	}
}

// expand replaces response files by their contents, as the compilers do: a file that does not exist
// is an argument like others.
func expand(args []string, depth int) ([]string, error) {
	if depth > mostNested {
		return nil, errors.New("response files name each other")
	}
	var all []string
	for _, arg := range args {
		name, is := strings.CutPrefix(arg, "@")
		text, err := os.ReadFile(name)
		if !is || errors.Is(err, os.ErrNotExist) {
			all = append(all, arg)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("response file: %w", err)
		}
		inner, err := expand(split(string(text)), depth+1)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// split is libiberty's buildargv: white space separates, either kind of quotes
// holds together, and a backslash takes the next character as it is, within
// quotes as well.
func split(text string) []string {
	var words []string
	var word []byte
	var quote byte
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			word, inside = append(word, text[i]), true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word = append(word, c)
		case c == '\'' || c == '"':
			quote, inside = c, true
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if inside {
				words = append(words, string(word))
			}
			word, inside = nil, false
		default:
			word, inside = append(word, c), true
		}
	}
	if inside {
		words = append(words, string(word))
	}
	return words
}
