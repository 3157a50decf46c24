package corpus

import (
	"context"
	"database/sql"
	"errors"
	"slices"
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

// Label sets labels of an entry, and removes those with the given keys. It fails with an
// *InputError if there is no such entry, or if a label has not the form of one.
func (c *Corpus) Label(ctx context.Context, id string, set map[string]string, remove []string) error {
	if err := checkLabels(set); err != nil {
		return err
	}
	return c.change(ctx, func(tx *sql.Tx) error {
		var there bool
		if err := tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM entries WHERE id = ?)", id).Scan(&there); err != nil {
			return err
		}
		if !there {
			return inputf("the corpus has no entry %q", id)
		}
		var changes []string
		for _, k := range remove {
			done, err := tx.ExecContext(ctx, "DELETE FROM labels WHERE entry = ? AND key = ?", id, k)
			if err != nil {
				return err
			}
			if n, err := done.RowsAffected(); err != nil {
				return err
			} else if n > 0 {
				changes = append(changes, "without "+k)
			}
		}
		for k, v := range set {
			changes = append(changes, k+"="+v)
		}
		slices.Sort(changes)
		return errors.Join(setLabels(ctx, tx, id, set), note(ctx, tx, id, "labelled", strings.Join(changes, ", ")))
	})
}
