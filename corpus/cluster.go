package corpus

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"diagnose/evidence"
)

// Cluster is failures with the same cause or, if no cause is known, with the same stack.
type Cluster struct {
	// Digest is the signature. ByCause says that it is the signature of a cause.
	Digest  string `json:"digest"`
	ByCause bool   `json:"by_cause"`
	// Kind, Proof, Summary and Program are those of Example, the newest failure.
	Kind    string `json:"kind"`
	Proof   string `json:"proof"`
	Summary string `json:"summary"`
	Program string `json:"program"`
	Example string `json:"example"`
	// Class and Estimate are those of the most severe failure; empty: none is known.
	Class    evidence.SeverityClass  `json:"severity_class,omitempty"`
	Estimate evidence.Exploitability `json:"severity,omitempty"`
	// Lines are the lines of the signature.
	Lines []string `json:"lines"`
	// Stacks counts the different stacks.
	Stacks int `json:"stacks"`
	// Count is the number of failures, First and Last their earliest and latest times.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Reported is when a summary first had it, Fixed when it was marked as fixed, with a Note,
	// and Returned when a summary first had it as back. Nil: never.
	Reported *time.Time `json:"reported,omitempty"`
	Fixed    *time.Time `json:"fixed,omitempty"`
	Note     string     `json:"note,omitempty"`
	Returned *time.Time `json:"returned,omitempty"`
	// Back is the first failure since the fix in a build that had not failed this way before
	// it; empty: there is none.
	Back string `json:"back,omitempty"`
	// Entries are its failures, the newest first.
	Entries []Entry `json:"-"`
}

// clusters are failures that have one cause, and what users and summaries said of them.
type clusters struct {
	store     *store
	entries   *entries
	diagnoses *diagnoses
}

// Clusters groups the failures that have a diagnosis, the most frequent first.
func (k *clusters) Clusters(ctx context.Context) ([]Cluster, error) {
	entries, err := k.entries.List(ctx, Filter{Dropped: true})
	if err != nil {
		return nil, err
	}
	return k.ClustersOf(ctx, entries)
}

// ClustersOf groups some of the failures, which are in the order of List.
func (k *clusters) ClustersOf(ctx context.Context, entries []Entry) ([]Cluster, error) {
	groups := map[string]*Cluster{}
	for _, e := range entries {
		if e.Diagnosis == nil || e.Diagnosis.Cluster() == "" {
			continue
		}
		digest := e.Diagnosis.Cluster()
		g := groups[digest]
		if g == nil {
			g = &Cluster{Digest: digest}
			groups[digest] = g
		}
		g.Entries = append(g.Entries, e)
	}
	list := make([]Cluster, 0, len(groups))
	for _, g := range groups {
		g.describe()
		if err := k.recall(ctx, g); err != nil {
			return nil, fmt.Errorf("corpus: %w", err)
		}
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Cluster) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.Digest, b.Digest)
	})
	return list, nil
}

// describe sets the fields that follow from the entries.
func (g *Cluster) describe() {
	newest := g.Entries[0]
	d := newest.Diagnosis
	g.ByCause, g.Kind, g.Proof, g.Summary = d.Cause != "", d.Kind, d.Proof, d.Summary
	g.Program, g.Example = newest.Name(), newest.ID
	g.Count, g.Last, g.First = len(g.Entries), newest.FailedAt, g.Entries[len(g.Entries)-1].FailedAt
	stacks := map[string]bool{}
	for i := range g.Entries {
		d := g.Entries[i].Diagnosis
		stacks[d.Stack] = true
		if d.Estimate.Rank() > g.Estimate.Rank() {
			g.Class, g.Estimate = d.Class, d.Estimate
		}
	}
	g.Stacks = len(stacks)
}

// recall sets the fields that the corpus stores for a cluster.
func (k *clusters) recall(ctx context.Context, g *Cluster) error {
	var err error
	if g.Lines, err = k.diagnoses.Lines(ctx, g.Digest); err != nil {
		return err
	}
	rows, err := k.store.db.QueryContext(ctx, "SELECT reported_at, fixed_at, note, returned_at FROM clusters WHERE digest = ?", g.Digest)
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		var reported, fixed, returned sql.NullInt64
		if err := rows.Scan(&reported, &fixed, &g.Note, &returned); err != nil {
			return err
		}
		g.Reported, g.Fixed, g.Returned = moment(reported), moment(fixed), moment(returned)
	}
	if g.Fixed != nil {
		g.Back = g.BackSince(*g.Fixed)
	}
	return rows.Err()
}

func moment(n sql.NullInt64) *time.Time {
	if !n.Valid {
		return nil
	}
	t := time.Unix(0, n.Int64).UTC()
	return &t
}

// BackSince returns the first failure since a fix in a build that had not failed this way
// before it; "" for none. Machines that still run an earlier build continue to fail, which is
// no regression.
func (g *Cluster) BackSince(fixed time.Time) string {
	old := map[string]bool{}
	for i := range g.Entries {
		if e := &g.Entries[i]; !e.FailedAt.After(fixed) && e.BuildID != "" {
			old[e.BuildID] = true
		}
	}
	for i := len(g.Entries) - 1; i >= 0; i-- {
		if e := &g.Entries[i]; e.FailedAt.After(fixed) && !old[e.BuildID] {
			return e.ID
		}
	}
	return ""
}

// FindCluster returns the cluster whose digest begins with a prefix.
func (k *clusters) FindCluster(ctx context.Context, prefix string) (Cluster, error) {
	list, err := k.Clusters(ctx)
	if err != nil {
		return Cluster{}, err
	}
	found := slices.DeleteFunc(list, func(g Cluster) bool { return !strings.HasPrefix(g.Digest, prefix) })
	switch {
	case len(found) == 0 || prefix == "":
		return Cluster{}, inputf("the corpus has no cluster %q", prefix)
	case len(found) > 1:
		return Cluster{}, inputf("%q is not clear: %d clusters begin so", prefix, len(found))
	}
	return found[0], nil
}

// Fixed marks a cluster as fixed at a time.
func (k *clusters) Fixed(ctx context.Context, digest string, at time.Time, text string) error {
	return k.mark(ctx, digest, "fixed", text, "fixed_at = ?, returned_at = NULL, note = ?", at.UnixNano(), text)
}

// Reopened removes the mark.
func (k *clusters) Reopened(ctx context.Context, digest, text string) error {
	return k.mark(ctx, digest, "reopened", text, "fixed_at = NULL, returned_at = NULL, note = ?", text)
}

func (k *clusters) mark(ctx context.Context, digest, what, detail, set string, args ...any) error {
	return k.store.change(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO clusters (digest) VALUES (?)", digest); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE clusters SET "+set+" WHERE digest = ?", append(args, digest)...); err != nil {
			return err
		}
		return note(ctx, tx, digest, what, detail)
	})
}

// Reported notes that a summary had clusters as new, and others as back, at a time. Earlier
// notes are not changed.
func (k *clusters) Reported(ctx context.Context, at time.Time, fresh, back []string) error {
	return k.store.change(ctx, func(tx *sql.Tx) error {
		for column, list := range map[string][]string{"reported_at": fresh, "returned_at": back} {
			for _, digest := range list {
				if _, err := tx.ExecContext(ctx, "INSERT OR IGNORE INTO clusters (digest) VALUES (?)", digest); err != nil {
					return err
				}
				done, err := tx.ExecContext(ctx, "UPDATE clusters SET "+column+" = ? WHERE digest = ? AND "+column+" IS NULL", at.UnixNano(), digest)
				if err != nil {
					return err
				}
				if n, err := done.RowsAffected(); err != nil || n == 0 {
					if err != nil {
						return err
					}
					continue
				}
				what := map[string]string{"reported_at": "reported", "returned_at": "came back"}[column]
				if err := note(ctx, tx, digest, what, ""); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
