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
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,ImportPath,Standard,GoFiles,EmbedFiles,CgoFiles,Module"}, judges...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("store: go list: %w", err)
	}
	hash, err := hashPackages(out)
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

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("store: git: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// hashPackages hashes the files of our packages and the versions of the others.
func hashPackages(list []byte) (string, error) {
	sum := sha256.New()
	for decoder := json.NewDecoder(bytes.NewReader(list)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
		} else if err != nil {
			return "", fmt.Errorf("store: go list: %w", err)
		}
		if p.Standard || strings.HasPrefix(p.ImportPath, "diagnose/bench/") && p.ImportPath != scorer {
			continue // a new program or operator does not change a judgement
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
