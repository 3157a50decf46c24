package nightly

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"diagnose/corpus"
	"diagnose/internal/wording"
	"diagnose/reports/tracker"
)

// AlertOptions say how to send alerts about a night.
type AlertOptions struct {
	Webhook *tracker.Webhook
	// Most is the maximum number of alerts about one cause each. One more sums up the rest.
	Most int
	// Page is the address of the pages of 'diagnose serve'; "" if there are none.
	Page string
	// DryRun sends nothing, and notes nothing in the corpus.
	DryRun bool
}

// Alerting is what a webhook was sent, or would be sent.
type Alerting struct {
	// Webhook is the name of the webhook. DryRun says that nothing was sent.
	Webhook string `json:"webhook"`
	DryRun  bool   `json:"dry_run"`
	// Alerts are those about one cause each.
	Alerts []Alerted `json:"alerts"`
	// Summed counts the causes that one more alert summed up.
	Summed int `json:"summed"`
	// Error is why the rest was not sent. The next night tries again.
	Error string `json:"error,omitempty"`
}

// Alerted is an alert about one cause.
type Alerted struct {
	// Digest is the digest of the cluster, Kind its kind of failure.
	Digest string `json:"digest"`
	Kind   string `json:"kind"`
	// Event is new or back.
	Event tracker.AlertEvent `json:"event"`
	// Error is why it was not sent.
	Error string `json:"error,omitempty"`
}

// alert is a cause that a webhook has to be told of.
type alert struct {
	group *Group
	event tracker.AlertEvent
}

// id is equal for alerts of one event: a cause is new once, and back once for each first failure
// after a fix.
func (a *alert) id() string {
	id := string(a.event) + "-" + a.group.Digest
	if a.event == tracker.AlertBack {
		id += "-" + a.group.Back
	}
	return id
}

// alerter sends the alerts of one night.
type alerter struct {
	AlertOptions
	corpus *corpus.Corpus
	name   string
	at     time.Time
	done   *Alerting
}

// Alert tells a webhook of the new and the returned causes of a summary, the most severe first, and
// notes in the corpus what it was told. A failure of the webhook is in the result, and the next night
// tries again. The error is that of the corpus or of the context. Call it before Told.
func (s *Summary) Alert(ctx context.Context, c *corpus.Corpus, opts AlertOptions) error {
	k := &alerter{AlertOptions: opts, corpus: c, name: corpus.AlertPrefix + opts.Webhook.Name(), at: s.Run.Started,
		done: &Alerting{Webhook: opts.Webhook.Name(), DryRun: opts.DryRun, Alerts: []Alerted{}}}
	s.Alerting = k.done
	list, err := k.due(ctx, s)
	if err != nil {
		return err
	}
	for i := range list {
		if i == opts.Most {
			return k.rest(ctx, list[i:])
		}
		if stop, err := k.one(ctx, &list[i]); stop || err != nil {
			return err
		}
	}
	return nil
}

// due returns what the webhook has to be told: the causes that are new or back, and those that an
// earlier night found so and could not tell. All of them are noted as owed before the first is sent.
func (k *alerter) due(ctx context.Context, s *Summary) ([]alert, error) {
	owed, err := k.corpus.Owed(ctx, k.name)
	if err != nil {
		return nil, err
	}
	var list []alert
	add := func(groups []Group, event tracker.AlertEvent, earlier bool) error {
		for i := range groups {
			a := alert{&groups[i], event}
			if earlier && a.group.Back != "" {
				a.event = tracker.AlertBack
			}
			was, err := k.corpus.Tracked(ctx, k.name, a.group.Digest)
			if err != nil {
				return err
			}
			if a.told(&was) || earlier && !owed[a.group.Digest] && (was.Issue == "" || a.event != tracker.AlertBack) {
				continue
			}
			if !earlier {
				mine, err := k.claim(ctx, &a)
				if err == nil && mine {
					err = k.finish(ctx, &a, false)
				}
				if err != nil {
					return err
				}
			}
			list = append(list, a)
		}
		return nil
	}
	for _, err := range []error{add(s.New, tracker.AlertNew, false), add(s.Back, tracker.AlertBack, false), add(s.Known, tracker.AlertNew, true), add(s.quiet, tracker.AlertNew, true)} {
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// told reports whether a webhook was told of an event. A cause that it was told of is not new.
func (a *alert) told(was *corpus.Tracked) bool {
	return was.Issue == a.id() || a.event == tracker.AlertNew && was.Issue != ""
}

// claim claims a cause for this process. It reports whether there still is something to tell.
func (k *alerter) claim(ctx context.Context, a *alert) (bool, error) {
	if k.DryRun {
		return true, nil
	}
	was, err := k.corpus.ClaimTracked(ctx, k.name, a.group.Digest)
	if errors.Is(err, corpus.ErrTaken) {
		return false, nil // another night tells it
	}
	if err == nil && a.told(&was) {
		return false, k.finish(ctx, a, false)
	}
	return err == nil, err
}

// finish notes that a cause was told, or only releases the claim.
func (k *alerter) finish(ctx context.Context, a *alert, sent bool) error {
	if k.DryRun {
		return nil
	}
	// What was sent is noted even if this process is being ended.
	ctx = context.WithoutCancel(ctx)
	if !sent {
		return k.corpus.FinishTracked(ctx, k.name, a.group.Digest, "", nil)
	}
	now := corpus.Tracked{Issue: a.id(), Count: a.group.Count, Last: a.group.Last, At: time.Now()}
	return k.corpus.FinishTracked(ctx, k.name, a.group.Digest, "alerted", &now)
}

// one sends the alert about one cause. It reports whether no more is to be sent.
func (k *alerter) one(ctx context.Context, a *alert) (bool, error) {
	mine, err := k.claim(ctx, a)
	if !mine || err != nil {
		return false, err
	}
	done := Alerted{Digest: a.group.Digest, Kind: a.group.Kind, Event: a.event}
	err = k.send(ctx, &tracker.Alert{ID: a.id(), Event: a.event, At: k.at, Cause: k.cause(a)})
	if failed := k.finish(ctx, a, err == nil); failed != nil {
		return true, failed
	}
	stop, err := k.judge(ctx, err, &done.Error)
	if err == nil && !stop {
		k.done.Alerts = append(k.done.Alerts, done)
	}
	return stop, err
}

// judge puts an error of the webhook into the result. It reports whether no more is to be sent.
func (k *alerter) judge(ctx context.Context, err error, one *string) (bool, error) {
	var no *tracker.Error
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return true, fmt.Errorf("nightly: interrupted: %w", context.Cause(ctx))
	case !errors.As(err, &no):
		return true, err
	case tracker.Final(err):
		k.done.Error = err.Error()
		return true, nil
	}
	*one = err.Error()
	return false, nil
}

// rest sums up causes in one alert.
func (k *alerter) rest(ctx context.Context, list []alert) error {
	var mine []alert
	sum := tracker.AlertRest{Causes: []tracker.AlertCause{}, Link: k.link("/")}
	first := ""
	for i := range list {
		a := &list[i]
		ok, err := k.claim(ctx, a)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		mine = append(mine, *a)
		if a.event == tracker.AlertNew {
			sum.New++
		} else {
			sum.Back++
		}
		if len(sum.Causes) < tracker.MostAlertCauses {
			sum.Causes = append(sum.Causes, *k.cause(a))
		}
		if first == "" {
			first = a.id()
		}
	}
	if len(mine) == 0 {
		return nil
	}
	err := k.send(ctx, &tracker.Alert{ID: fmt.Sprintf("%s-%d-%s", tracker.AlertMore, len(mine), first), Event: tracker.AlertMore, At: k.at, More: &sum})
	for i := range mine {
		if failed := k.finish(ctx, &mine[i], err == nil); failed != nil {
			return failed
		}
	}
	if _, err = k.judge(ctx, err, &k.done.Error); err == nil && k.done.Error == "" {
		k.done.Summed = len(mine)
	}
	return err
}

func (k *alerter) send(ctx context.Context, a *tracker.Alert) error {
	if k.DryRun {
		return nil
	}
	return k.Webhook.Send(ctx, a)
}

func (k *alerter) cause(a *alert) *tracker.AlertCause {
	g := a.group
	return &tracker.AlertCause{Digest: g.Digest, Kind: g.Kind, Proof: g.Proof, Summary: g.Summary, Program: g.Program, Class: g.Class, Estimate: g.Estimate,
		Count: g.Count, Recent: g.Recent, First: g.First, Last: g.Last, Example: g.Example, Back: g.Back, Link: k.link("/cause/" + g.Digest)}
}

// link is the address of a page; "" if it is not known where the pages are.
func (k *alerter) link(path string) string {
	if k.Page == "" {
		return ""
	}
	return strings.TrimSuffix(k.Page, "/") + path
}

func (k *Alerting) title() string {
	if k.DryRun {
		return "What would be sent to " + k.Webhook
	}
	return "Sent to " + k.Webhook
}

// summed says of how many causes one more alert is; "" for none.
func (k *Alerting) summed() string {
	if k.Summed == 0 {
		return ""
	}
	return "one alert sums up " + wording.Count(k.Summed, "more cause")
}
