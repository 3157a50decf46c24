package tracker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"diagnose/internal/privatefile"
)

// WebhookFormat is the form of the messages to a webhook.
type WebhookFormat string

// The forms.
const (
	// WebhookJSON is the JSON of an Alert.
	WebhookJSON WebhookFormat = "json"
	// WebhookSlack is a message for Slack's incoming webhooks and servers that take the same.
	WebhookSlack WebhookFormat = "slack"
)

// WebhookVariable is the environment variable with the address of a webhook.
const WebhookVariable = "DIAGNOSE_WEBHOOK_URL"

// WebhookAddress returns the address of a webhook: the given one, or that in a file, or that in the
// environment, from which it is removed, so that programs that are started later do not inherit it.
// Without one the result is empty. Whoever knows the address can write to the webhook, so it is a
// secret.
func WebhookAddress(given, file string) (Secret, error) {
	variable := os.Getenv(WebhookVariable)
	os.Unsetenv(WebhookVariable)
	switch {
	case given != "" && file != "":
		return Secret{}, errors.New("the address is given twice, and in a file")
	case file != "":
		text, err := privatefile.ReadSecret(file, mostToken+2)
		if err != nil {
			return Secret{}, err
		}
		s, err := secret(string(text))
		if err == nil && s.Empty() {
			err = errors.New("it is empty")
		}
		if err != nil {
			return Secret{}, fmt.Errorf("%s: %w", file, err)
		}
		return s, nil
	case given != "":
		return secret(given)
	}
	return secret(variable)
}

// Webhook sends alerts to one address.
type Webhook struct {
	client *client
	format WebhookFormat
	query  url.Values
}

// OpenWebhook makes a webhook. The address must be https, except on this machine itself. Its errors
// do not show it.
func OpenWebhook(at Secret, format WebhookFormat) (*Webhook, error) {
	if format != WebhookJSON && format != WebhookSlack {
		return nil, fmt.Errorf("there is no form %q of messages; there are %s and %s", format, WebhookJSON, WebhookSlack)
	}
	u, err := address(at.text)
	if err != nil {
		return nil, fmt.Errorf("the webhook's address: %w", err)
	}
	sum := sha256.Sum256([]byte(at.text))
	w := &Webhook{format: format, query: u.Query()}
	// The name distinguishes two webhooks of one host.
	w.client = newClient(fmt.Sprintf("webhook:%s#%s", u.Host, hex.EncodeToString(sum[:4])), u, at)
	for _, part := range []string{u.EscapedPath(), u.Path, u.RawQuery} {
		if len(part) > 1 {
			w.client.secrets = append(w.client.secrets, part)
		}
	}
	w.client.message = func(body []byte) (string, int) {
		if !utf8.Valid(body) {
			return "", 0
		}
		return cutText(strings.TrimSpace(string(body)), mostMessage), 0
	}
	return w, nil
}

// Name is the webhook's name in texts and in the corpus. It holds no secret.
func (w *Webhook) Name() string { return w.client.name }

// Send sends an alert. A request that may have been carried out although there was no answer is sent
// again with the same ID: an alert that is lost is worse than one that comes twice. The error is an
// *Error if it is about the webhook.
func (w *Webhook) Send(ctx context.Context, a *Alert) error {
	if a.Cause != nil {
		a.Cause.cut()
	}
	if a.More != nil {
		for i := range a.More.Causes {
			a.More.Causes[i].cut()
		}
	}
	a.SchemaVersion = AlertVersion
	r := request{method: http.MethodPost, query: w.query, body: a, again: true, header: http.Header{"Idempotency-Key": {a.ID}}}
	if w.format == WebhookSlack {
		r.body = a.slack()
	}
	_, err := w.client.do(ctx, r, nil)
	return err
}
