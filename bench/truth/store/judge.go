package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// judges are the packages whose dependencies decide what a report says and what it is worth.
var judges = []string{"./diagnosis/driver", "./replay/recorder", "./agent", "./bench/truth/score"}

// scorer is the package of the bench that judges.
const scorer = "diagnose/bench/truth/score"

// Code is the state of the code that judges.
type Code struct {
	// Hash is of the content of the packages that judge, Commit the last commit, with a plus
	// sign if files have changed since.
	Hash   string `json:"hash"`
	Commit string `json:"commit"`
}

// listed is the part of the output of go list that is used.
type listed struct {
	Dir        string
	ImportPath string
	Standard   bool
	GoFiles    []string
	EmbedFiles []string
	CgoFiles   []string
	Module     *struct{ Path, Version string }
}

// ReadCode reads the state of the code of a checkout.
func ReadCode(ctx context.Context, root string) (*Code, error) {
	hash, err := hashOf(ctx, root, judge, judges...)
	if err != nil {
		return nil, err
	}
	commit, err := git(ctx, root, "rev-parse", "--short=7", "HEAD")
	if err != nil {
		return nil, err
	}
	changed, err := git(ctx, root, "status", "--porcelain", "--", ".", ":!bench", ":!docs")
	if changed != "" {
		commit += "+"
	}
	return &Code{hash, commit}, err
}

// judge reports whether a package is one of those that judge. A new program or operator does not change a judgement.
func judge(p *listed) bool {
	return !p.Standard && (!strings.HasPrefix(p.ImportPath, "diagnose/bench/") || p.ImportPath == scorer)
}

// ReadOperators hashes the content of the package that makes bugs, and says what answers to them are accepted.
func ReadOperators(ctx context.Context, root string) (string, error) {
	return hashOf(ctx, root, func(p *listed) bool { return p.ImportPath == operators }, "./"+strings.TrimPrefix(operators, "diagnose/"))
}

// operators is the package that makes bugs.
const operators = "diagnose/bench/truth/inject"

// hashOf hashes those that count of some packages and all that they need.
func hashOf(ctx context.Context, root string, counts func(*listed) bool, packages ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,ImportPath,Standard,GoFiles,EmbedFiles,CgoFiles,Module"}, packages...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("store: go list: %w", err)
	}
	return hashPackages(out, counts)
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("store: git: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// hashPackages hashes the files of our packages that count and the versions of the others.
func hashPackages(list []byte, counts func(*listed) bool) (string, error) {
	sum := sha256.New()
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
		} else if err != nil {
			return "", fmt.Errorf("store: go list: %w", err)
		}
		if !counts(&p) {
			continue
		}
		if p.Module != nil && p.Module.Version != "" {
			fmt.Fprintln(sum, p.ImportPath, p.Module.Version)
			continue
		}
		for _, files := range [][]string{p.GoFiles, p.CgoFiles, p.EmbedFiles} {
			for _, name := range files {
				content, err := os.ReadFile(filepath.Join(p.Dir, name))
				if err != nil {
					return "", fmt.Errorf("store: %w", err)
				}
				fmt.Fprintf(sum, "%s/%s %x\n", p.ImportPath, name, sha256.Sum256(content))
			}
		}
	}
}
