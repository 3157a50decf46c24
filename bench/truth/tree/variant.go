package tree

// Variant is a kind of build.
type Variant struct {
	Name, CC, CXX, Flags string
}

// The builds. What is diagnosed is Plain0 and Plain2; the others tell the truth about it.
var (
	Plain0   = Variant{"O0", "gcc", "g++", "-g -O0"}
	Plain2   = Variant{"O2", "gcc", "g++", "-g -O2"}
	Address  = Variant{"address", "gcc", "g++", "-g -O1 -fno-omit-frame-pointer -fsanitize=address,bounds,null,object-size -fno-sanitize-recover=bounds,null,object-size"}
	Defined  = Variant{"defined", "clang", "clang++", "-g -O1 -fno-omit-frame-pointer -fsanitize=memory -fsanitize-recover=memory -fsanitize-memory-track-origins"}
	Thread   = Variant{"thread", "gcc", "g++", "-g -O1 -fno-omit-frame-pointer -fsanitize=thread"}
	Coverage = Variant{"coverage", "gcc", "g++", "-g -O0 --coverage"}
)

// Plain are the builds that are diagnosed.
var Plain = []Variant{Plain0, Plain2}
