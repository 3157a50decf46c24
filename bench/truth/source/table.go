package source

// autotools has configure make one static program, without tools that would be run again. The
// variants of a package share what it finds out: they differ in the compiler's options only.
const autotools = "./configure --disable-shared --enable-static --disable-nls --disable-dependency-tracking -q --cache-file=../config.cache"

// shared removes from the cache what makes configure refuse other options of the compiler.
const shared = " && sed -i /^ac_cv_env_/d ../config.cache"

// These packages are configured by other tools than the archive's machines have.
const (
	janssonConfiguration = "sed -e 's/@json_inline@/inline/;s/@json_have_long_long@/1/;s/@json_have_localeconv@/1/;s/@json_have_atomic_builtins@/1/;s/@json_have_sync_builtins@/1/' src/jansson_config.h.in > src/jansson_config.h && : > src/jansson_private_config.h"
	yajlConfiguration    = "mkdir -p truth/yajl && cp src/api/*.h truth/yajl && sed -e 's/[$]{YAJL_MAJOR}/2/;s/[$]{YAJL_MINOR}/1/;s/[$]{YAJL_MICRO}/0/' src/api/yajl_version.h.cmake > truth/yajl/yajl_version.h"
)

// one are the arguments of a program that reads one file.
var one = []string{"{}"}

// Packages are the programs. Inputs are the package's own tests or
// examples, unless Own says that they are ours; a library is called by a driver of ours or
// of its examples. The threads and signals of the programs
// with such names are ours.
var Packages = []Package{
	{
		Name: "bc", Configure: autotools + shared, Make: "make -s", Program: "bc/bc",
		Sources: []string{"bc/[a-rt-z]*.c", "bc/storage.c", "lib/number.c"},
		Inputs:  []Input{{Args: []string{"-l", "{}"}, Files: "Test/[adf-im]*.b"}, {Args: []string{"-l", "{}"}, Own: "bc/*.b"}},
	},
	{
		Name: "byacc", Configure: autotools + shared, Make: "make -s", Program: "yacc",
		Sources: []string{"*.c"},
		Inputs:  []Input{{Args: []string{"-v", "-d", "{}"}, Files: "test/*.y"}},
	},
	{
		Name: "bzip2", Compile: &Compile{
			Sources: []string{"blocksort.c", "bzip2.c", "bzlib.c", "compress.c", "crctable.c", "decompress.c", "huffman.c", "randtable.c"},
			Flags:   "-D_FILE_OFFSET_BITS=64",
		},
		Program: "truth-program", Sources: []string{"[a-c]*.c", "decompress.c", "huffman.c"},
		Inputs: []Input{
			{Args: []string{"-dc", "{}"}, Files: "sample*.bz2"}, {Args: []string{"-1c", "{}"}, Files: "sample3.ref"},
			{Args: []string{"-9c", "{}"}, Files: "[a-d]*.c"}, {Args: []string{"-2c", "{}"}, Files: "README*"},
		},
	},
	{
		Name: "cjson", Compile: &Compile{Sources: []string{"cJSON.c", "cJSON_Utils.c"}, Flags: "-I.", Libs: "-lm", Driver: "cjson.c"},
		Program: "truth-program", Sources: []string{"cJSON.c", "cJSON_Utils.c"},
		Inputs: []Input{{Args: one, Files: "tests/inputs/test*"}},
	},
	{
		Name: "ed", Configure: "./configure CC=\"$CC\" CFLAGS=\"$CFLAGS\" LDFLAGS=\"$LDFLAGS\"", Make: "make -s", Program: "ed",
		Sources: []string{"*.c"},
		Inputs:  []Input{{Args: []string{"-s", "{dir}/testsuite/test.txt"}, Files: "testsuite/*.ed", Stdin: true}},
	},
	{
		Name: "exuberant-ctags", Configure: "./configure", Make: "make -s ctags", Program: "ctags",
		Sources: []string{"[a-eg-lp-z]*.c", "fortran.c", "[m-o]a[ki]*.c"},
		Inputs:  []Input{{Args: []string{"-n", "-f", "-", "{}"}, Files: "*.c"}, {Args: []string{"--c-kinds=+p", "--fields=+S", "-f", "-", "{}"}, Files: "*.h"}},
	},
	{
		Name: "figlet", Compile: &Compile{
			Sources: []string{"figlet.c", "zipio.c", "crc.c", "inflate.c", "utf8.c"},
			Flags:   `-DTLF_FONTS -DDEFAULTFONTDIR='"fonts"' -DDEFAULTFONTFILE='"standard"'`,
		},
		Program: "truth-program", Sources: []string{"*.c"},
		Inputs: []Input{{Args: []string{"-f", "{}", "-w", "60", "Hello, world 123"}, Files: "fonts/*.flf"}, {Args: []string{"-d", "{dir}/fonts", "-c", "-k"}, Files: "README", Stdin: true}},
	},
	{
		Name: "flex", Configure: autotools + shared, Make: "make -s -C src stage1flex", Program: "src/stage1flex", // flex itself has a scanner that this one made
		Sources: []string{"src/[a-bd-ln-rt-z]*.c", "src/scanopt.c", "src/sym.c"},
		Inputs:  []Input{{Args: []string{"-t", "{}"}, Files: "tests/*.l"}},
	},
	{
		Name: "gawk", Configure: autotools + " --disable-mpfr --disable-extensions" + shared, Make: "make -s -C support && make -s gawk", Program: "gawk",
		Sources: []string{"array.c", "awkgram.c", "builtin.c", "[d-q]*.c", "re.c", "st*.c", "symbol.c"},
		Inputs:  []Input{{Args: []string{"-f", "{}"}, Files: "test/[a-h]*.awk"}},
	},
	{
		Name: "giflib", Compile: &Compile{
			Sources: []string{"dgif_lib.c", "egif_lib.c", "getarg.c", "gif_err.c", "gif_font.c", "gif_hash.c", "gifalloc.c", "openbsd-reallocarray.c", "qprintf.c", "quantize.c", "gifbuild.c"},
			Flags:   "-std=gnu99",
		},
		Program: "truth-program", Sources: []string{"dgif_lib.c", "gif_font.c", "gif_hash.c", "gifalloc.c", "gifbuild.c", "egif_lib.c"},
		Inputs: []Input{{Args: []string{"-d", "{}"}, Files: "pic/*.gif"}},
	},
	{
		Name: "gzip", Configure: autotools + shared, Make: "make -s", Program: "gzip",
		Sources: []string{"*.c"},
		Inputs:  []Input{{Args: []string{"-9c", "{}"}, Files: "[a-m]*.c"}, {Args: []string{"-1c", "{}"}, Files: "README*"}, {Args: []string{"-dc"}, Files: "tests/*.gz", Stdin: true}},
	},
	{
		Name: "jansson", Configure: janssonConfiguration,
		Compile: &Compile{Sources: []string{"src/*.c"}, Flags: "-Isrc -DHAVE_STDINT_H -DHAVE_LOCALE_H", Driver: "jansson.c"},
		Program: "truth-program", Sources: []string{"src/*.c"},
		Inputs: []Input{{Args: one, Files: "test/suites/valid/*/input"}, {Args: one, Files: "test/suites/invalid/[a-d]*/input"}},
	},
	{
		Name: "jimtcl", Configure: "./configure --disable-docs --disable-lineedit", Make: "make -s", Program: "jimsh",
		Sources: []string{"jim.c", "jimregexp.c", "jim-format.c", "utf8.c", "jim-subcmd.c"},
		Inputs:  []Input{{Args: one, Own: "tcl/*.tcl"}},
	},
	{
		Name: "libcsv", Compile: &Compile{Sources: []string{"libcsv.c", "examples/csvinfo.c"}, Flags: "-I."},
		Program: "truth-program", Sources: []string{"libcsv.c"},
		Inputs: []Input{{Args: one, Files: "tests/*.csv"}},
	},
	{
		Name: "libyaml", Compile: &Compile{
			Sources: []string{"src/*.c", "tests/run-emitter.c"},
			Flags:   `-Iinclude -Isrc -DYAML_VERSION_STRING='"0.2.5"' -DYAML_VERSION_MAJOR=0 -DYAML_VERSION_MINOR=2 -DYAML_VERSION_PATCH=5`,
		},
		Program: "truth-program", Sources: []string{"src/*.c"},
		Inputs: []Input{{Args: one, Files: "examples/*.yaml"}},
	},
	{
		Name: "lua5.4", Configure: `echo '#define DEB_HOST_MULTIARCH "x86_64-linux-gnu"' > src/lua5.4-deb-multiarch.h`,
		Compile: &Compile{Sources: []string{"src/*.c"}, Except: []string{"src/luac.c"}, Flags: "-DLUA_USE_POSIX -DLUA_COMPAT_5_3", Libs: "-lm"},
		Program: "truth-program", Sources: []string{"src/l*.c"},
		Inputs: []Input{{Args: one, Own: "lua/*.lua"}},
	},
	{
		Name: "lz4", Compile: &Compile{Sources: []string{"lib/*.c", "programs/*.c"}, Flags: "-Ilib -DXXH_NAMESPACE=LZ4_"},
		Program: "truth-program", Sources: []string{"lib/lz4*.c", "programs/lz4*.c"},
		Inputs: []Input{{Args: []string{"-9", "-c", "{}"}, Files: "lib/*.c"}, {Args: []string{"-1", "-BD", "-c", "{}"}, Files: "programs/*.c"}},
	},
	{
		Name: "m4", Configure: autotools + shared, Make: "make -s", Program: "src/m4",
		Sources: []string{"src/*.c"},
		Inputs:  []Input{{Args: []string{"-I", "{dir}/examples", "{}"}, Files: "examples/*.m4"}},
	},
	{
		Name: "mawk", Configure: "./configure -q --disable-dependency-tracking", Make: "make -s", Program: "mawk",
		Sources: []string{"[a-lnp-z]*.c", "memory.c"},
		Inputs:  []Input{{Args: []string{"-f", "{}", "{dir}/test/mawktest.dat"}, Files: "test/*.awk"}, {Args: []string{"-f", "{}", "{dir}/test/mawktest.dat"}, Own: "awk/*.awk"}},
	},
	{
		Name: "mujs", Compile: &Compile{Sources: []string{"js*.c", "regexp.c", "utf.c", "main.c"}, Flags: "-I.", Libs: "-lm"},
		Program: "truth-program", Sources: []string{"js[a-np-z]*.c", "jsobject.c", "regexp.c", "utf.c"},
		Inputs: []Input{{Args: one, Own: "js/*.js"}},
	},
	{
		Name: "mxml", Configure: "./configure -q --disable-shared", Compile: &Compile{Sources: []string{"mxml-*.c", "testmxml.c"}, Libs: "-lpthread"},
		Program: "truth-program", Sources: []string{"mxml-[a-oq-z]*.c"},
		Inputs: []Input{{Args: one, Files: "test.xml"}, {Args: one, Own: "xml/*.xml"}},
	},
	{
		Name: "nasm", Configure: "./configure -q", Make: "make -s nasm", Program: "nasm",
		Sources: []string{"asm/[a-oq-z]*.c", "asm/preproc.c", "asm/parser.c", "nasmlib/*.c", "output/outbin.c", "output/outelf.c"},
		Inputs:  []Input{{Args: []string{"-f", "bin", "-o", "out", "{}"}, Files: "test/*.asm"}},
	},
	{
		Name: "pcre2", Configure: autotools + " --disable-jit" + shared, Make: "make -s pcre2test", Program: "pcre2test",
		Sources: []string{"src/pcre2_[a-ik-z]*.c"},
		Inputs:  []Input{{Args: []string{"-q", "{}"}, Files: "testdata/testinput*"}, {Args: []string{"-q", "{}"}, Own: "pcre2/*"}},
	},
	{
		Name: "sed", Configure: autotools + shared, Program: "sed/sed",
		Make:    "make -s -k || test -x sed/sed", // its manual page needs help2man
		Sources: []string{"sed/*.c"},
		Inputs:  []Input{{Args: []string{"-n", "-f", "{dir}/testsuite/dc.sed"}, Own: "sed/*.dc", Stdin: true}, {Args: []string{"-f", "{}", "{dir}/README"}, Own: "sed/*.sed"}},
	},
	{
		Name: "sqlite3", Configure: "./configure -q --disable-shared --disable-tcl --disable-readline", Make: "make -s sqlite3 USE_AMALGAMATION=0", Program: "sqlite3",
		Sources: []string{"src/[a-ln-rt-z]*.c", "src/select.c", "src/main.c"},
		Inputs:  []Input{{Args: []string{":memory:"}, Own: "sql/*.sql", Stdin: true}},
	},
	{
		Name: "tinyxml2", Compile: &Compile{Sources: []string{"tinyxml2.cpp"}, Flags: "-I.", Driver: "tinyxml2.cpp"},
		Program: "truth-program", Sources: []string{"tinyxml2.cpp"},
		Inputs: []Input{{Args: one, Files: "resources/*.xml"}, {Args: one, Own: "xml/*.xml"}},
	},
	{
		Name: "tre", Configure: autotools + shared, Make: "make -s", Program: "src/agrep",
		Sources: []string{"lib/*.c", "src/agrep.c"},
		Inputs:  []Input{{Args: []string{"-2", "-n", "approximate", "{}"}, Files: "[A-T]*"}, {Args: []string{"-E", "3", "-i", "--show-position", "(lib|reg)[a-z]+ +", "{}"}, Files: "[A-T]*"}},
	},
	{
		Name: "units", Configure: autotools + shared, Make: "make -s units", Program: "units",
		Sources: []string{"units.c", "parse.tab.c", "strfunc.c"},
		Inputs:  []Input{{Args: []string{"-f", "{dir}/definitions.units", "-q"}, Own: "units/*.txt", Stdin: true}},
	},
	{
		Name: "yajl", Configure: yajlConfiguration,
		Compile: &Compile{Sources: []string{"src/*.c", "test/parsing/yajl_test.c"}, Flags: "-Itruth -Isrc -Isrc/api", Libs: "-lm"},
		Program: "truth-program", Sources: []string{"src/*.c"},
		Inputs: []Input{{Args: one, Files: "test/parsing/cases/*.json"}},
	},
	{
		Name: "zlib", Configure: "./configure --static", Make: "make -s minigzip", Program: "minigzip",
		Sources: []string{"[a-z]*.c"},
		Inputs:  []Input{{Args: []string{"-9"}, Files: "[a-i]*.c", Stdin: true}, {Args: []string{"-1", "-f"}, Files: "README", Stdin: true}},
	},
	{
		Name: "cjson-threads", Debian: "cjson", Threads: true,
		Compile: &Compile{Sources: []string{"cJSON.c"}, Flags: "-I. -pthread", Libs: "-lm -pthread", Driver: "jobs-cjson.c"},
		Program: "truth-program", Sources: []string{"truth-driver-jobs-cjson.c"},
		Inputs: []Input{{Args: one, Files: "tests/inputs/test*"}},
	},
	{
		Name: "libzstd", Threads: true,
		Make:    "make -s -C programs zstd HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 BACKTRACE=0",
		Program: "programs/zstd", Sources: []string{"lib/common/pool.c", "lib/compress/zstdmt_compress.c"},
		Inputs: []Input{{Args: []string{"-T3", "-q", "-c", "{}"}, Files: "lib/compress/zstd_[a-g]*.c"}, {Args: []string{"-T2", "-B1", "-q", "-c", "{}"}, Files: "lib/legacy/*.c"}},
	},
	{
		Name: "pbzip2", Threads: true,
		Compile: &Compile{
			Sources: []string{"pbzip2.cpp", "BZ2StreamScanner.cpp", "ErrorContext.cpp"},
			Flags:   "-pthread -D_LARGEFILE64_SOURCE -D_FILE_OFFSET_BITS=64 -DPBZIP_NO_LOAD_AVG", Libs: "-pthread -lbz2",
		},
		Program: "truth-program", Sources: []string{"pbzip2.cpp", "BZ2StreamScanner.cpp"},
		Inputs: []Input{{Args: []string{"-c", "-p3", "-b1", "-1", "{}"}, Files: "[A-Zp]*"}, {Args: []string{"-c", "-p2", "-b1", "-1", "-r", "{}"}, Files: "*.cpp"}},
	},
	{
		Name: "pigz", Threads: true,
		Compile: &Compile{Sources: []string{"pigz.c", "yarn.c", "try.c"}, Flags: "-DNOZOPFLI -pthread", Libs: "-lz -lm -pthread"},
		Program: "truth-program", Sources: []string{"pigz.c", "yarn.c"},
		Inputs: []Input{
			{Args: []string{"-n", "-c", "-p3", "-b32", "-1", "{}"}, Files: "[A-Zpt]*"}, {Args: []string{"-n", "-c", "-p2", "-b32", "-i", "{}"}, Files: "*.[ch]"},
			{Args: []string{"-n", "-c", "-p4", "-b32", "-R", "-9", "{}"}, Files: "pigz.*"},
		},
	},
	{
		Name: "plzip", Threads: true,
		Compile: &Compile{Sources: []string{"*.cc"}, Flags: `-DPROGVERSION='"1"' -D_FILE_OFFSET_BITS=64 -pthread`, Libs: "-llz -pthread"},
		Program: "truth-program", Sources: []string{"compress.cc", "dec*.cc"},
		Inputs: []Input{
			{Args: []string{"-1", "-n3", "-s4KiB", "-B8KiB", "-c", "{}"}, Files: "[a-m]*.cc"}, {Args: []string{"-1", "-n2", "-s4KiB", "-B8KiB"}, Files: "[A-Z]*", Stdin: true},
			{Args: []string{"-n3", "-dc", "{}"}, Files: "testsuite/test*.lz"}, {Args: []string{"-n2", "-d"}, Files: "testsuite/test*.lz", Stdin: true},
		},
	},
	{
		Name: "lz4-threads", Debian: "lz4", Threads: true,
		Compile: &Compile{Sources: []string{"lib/lz4.c"}, Flags: "-Ilib -pthread", Libs: "-pthread", Driver: "pipeline-lz4.c"},
		Program: "truth-program", Sources: []string{"truth-driver-pipeline-lz4.c"},
		Inputs: []Input{{Args: one, Files: "programs/*.[ch]"}, {Args: one, Files: "examples/*.c"}},
	},
	{
		Name: "jansson-threads", Debian: "jansson", Threads: true, Configure: janssonConfiguration,
		Compile: &Compile{Sources: []string{"src/*.c"}, Flags: "-Isrc -DHAVE_STDINT_H -DHAVE_LOCALE_H -pthread", Libs: "-pthread", Driver: "cache-jansson.c"},
		Program: "truth-program", Sources: []string{"truth-driver-cache-jansson.c"},
		Inputs: []Input{{Args: one, Files: "test/suites/valid/*/input"}},
	},
	{
		Name: "yajl-threads", Debian: "yajl", Threads: true, Configure: yajlConfiguration,
		Compile: &Compile{Sources: []string{"src/*.c"}, Flags: "-Itruth -Isrc -Isrc/api -pthread", Libs: "-lm -pthread", Driver: "pool-yajl.c"},
		Program: "truth-program", Sources: []string{"truth-driver-pool-yajl.c"},
		Inputs: []Input{{Args: one, Files: "test/parsing/cases/*.json"}},
	},
	{
		Name: "tinyxml2-threads", Debian: "tinyxml2", Threads: true,
		Compile: &Compile{Sources: []string{"tinyxml2.cpp"}, Flags: "-I. -pthread", Libs: "-pthread", Driver: "accounts-tinyxml2.cpp"},
		Program: "truth-program", Sources: []string{"truth-driver-accounts-tinyxml2.cpp"},
		Inputs: []Input{{Args: one, Files: "resources/*.xml"}, {Args: one, Own: "xml/*.xml"}},
	},
	{
		Name: "cjson-signals", Debian: "cjson", Signals: true,
		Compile: &Compile{Sources: []string{"cJSON.c"}, Flags: "-I.", Libs: "-lm", Driver: "samples-cjson.c"},
		Program: "truth-program", Sources: []string{"truth-driver-samples-cjson.c"},
		Inputs: []Input{{Args: one, Files: "tests/inputs/test*"}},
	},
	{
		Name: "libcsv-signals", Debian: "libcsv", Signals: true,
		Compile: &Compile{Sources: []string{"libcsv.c"}, Flags: "-I.", Driver: "children-csv.c"},
		Program: "truth-program", Sources: []string{"truth-driver-children-csv.c"},
		Inputs: []Input{{Args: one, Files: "tests/*.csv"}, {Args: one, Files: "*.[ch]"}},
	},
}
