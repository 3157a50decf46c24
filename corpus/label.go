package corpus

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"

	"diagnose/evidence/suppress"
)

const longestLabel = 1 << 10

// ParseLabel splits "key=value".
func ParseLabel(text string) (key, value string, err error) {
	key, value, found := strings.Cut(text, "=")
	if !found {
		return "", "", inputf("the label %q is not of the form key=value", text)
	}
	return key, value, checkLabels(map[string]string{key: value})
}

func checkLabels(labels map[string]string) error {
	for k, v := range labels {
		if k == "" || len(k) > longestLabel || len(v) > longestLabel || !utf8.ValidString(k) || !utf8.ValidString(v) ||
			strings.ContainsFunc(k, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '=' }) || strings.ContainsFunc(v, unicode.IsControl) {
			return inputf("%.80q=%.80q is no label: a key has no spaces, a value no control characters, and neither more than %d bytes", k, v, longestLabel)
		}
		if k == suppress.LabelKey {
			if _, err := suppress.ParseLabel(v); err != nil {
				return inputf("the label %s takes a day and a reason: %v", k, err)
			}
		}
	}
	return nil
}

// setLabels sets labels and replaces those with the same keys.
func setLabels(ctx context.Context, tx *sql.Tx, id string, labels map[string]string) error {
	for k, v := range labels {
		if _, err := tx.ExecContext(ctx, "INSERT INTO labels (entry, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value", id, k, v); err != nil {
			return err
		}
	}
	return nil
}
