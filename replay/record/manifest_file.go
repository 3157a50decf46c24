package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"diagnose/replay/record/eventlog"
)

// ManifestError describes an error in a manifest.
type ManifestError struct {
	Field string
	What  string
}

func (e *ManifestError) Error() string { return "record: " + e.Bare() }

// Bare is the text for wording.Bare.
func (e *ManifestError) Bare() string {
	if e.Field == "" {
		return ManifestName + ": " + e.What
	}
	return fmt.Sprintf("%s: %s %s", ManifestName, e.Field, e.What)
}

// DecodeManifest decodes a manifest from its JSON and checks it. Unknown fields are an error: a
// manifest with other fields has another version.
func DecodeManifest(data []byte) (*Manifest, error) {
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, &ManifestError{What: err.Error()}
	}
	switch {
	case head.Version == nil:
		return nil, &ManifestError{Field: "version", What: "is missing"}
	case *head.Version > ManifestVersion:
		return nil, &eventlog.VersionError{File: ManifestName, Got: *head.Version, Want: ManifestVersion}
	case *head.Version < 1:
		return nil, &ManifestError{"version", fmt.Sprintf("is %d", *head.Version)}
	}
	m := new(Manifest)
	if err := decodeStrict(data, m); err != nil {
		return nil, &ManifestError{What: err.Error()}
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	return m, nil
}

func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more data follows its end")
	}
	return nil
}

// ReadManifest reads the manifest of a recording's directory.
func ReadManifest(dir string) (*Manifest, error) {
	f, err := openInside(dir, ManifestName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err != nil {
		return nil, &eventlog.InputError{Err: err}
	}
	if len(data) > maxManifest {
		return nil, &ManifestError{What: fmt.Sprintf("is larger than %d MiB", maxManifest>>20)}
	}
	return DecodeManifest(data)
}

// Write writes the manifest to a recording's directory, whole or not at all, and replaces an
// earlier one. It sets the version.
func (m *Manifest) Write(dir string) error { return m.write(dir, "  ") }

// writeShort writes it without indentation, in half the time, if it is written again soon.
func (m *Manifest) WriteShort(dir string) error { return m.write(dir, "") }

func (m *Manifest) write(dir, indent string) error {
	m.Version = m.lowestVersion()
	if err := m.Check(); err != nil {
		return err
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(m); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	return writeWhole(dir, ManifestName, b.Bytes())
}

// lowestVersion returns the first version that has all fields that are set.
func (m *Manifest) lowestVersion() int {
	if m.Atomics != nil {
		return 6
	}
	if m.Turns != nil {
		return 5
	}
	if m.LinkerCache != nil {
		return 4
	}
	if m.StartFile != nil {
		return 3
	}
	for i := range m.Start.Mappings {
		if f := m.Start.Mappings[i].File; f != nil && f.SHA256 != "" {
			return 2
		}
	}
	return 1
}
