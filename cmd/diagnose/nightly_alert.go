package main

import (
	"net/url"

	"github.com/spf13/cobra"

	"diagnose/reports/tracker"
)

// alertFlags say where alerts about new and returned causes are sent.
type alertFlags struct {
	webhook, webhookFile, webhookFormat string
	alerts                              int
	// page is where 'diagnose serve' shows the corpus.
	page string
}

func (f *alertFlags) registerAlerts(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.webhook, "webhook", "", "`address` that gets an alert for each cause that is new or back")
	flags.StringVar(&f.webhookFile, "webhook-url-file", "", "`file` with the webhook's address, which others cannot read")
	flags.StringVar(&f.webhookFormat, "webhook-format", string(tracker.WebhookJSON), "`form` of the alerts: json, slack")
	flags.IntVar(&f.alerts, "webhook-most", 10, "send so `many` alerts in a night at most, and one about the rest")
	flags.StringVar(&f.page, "page-url", "", "`address` of the pages of 'diagnose serve', which alerts link to")
	choices(c, "webhook-format", string(tracker.WebhookJSON), string(tracker.WebhookSlack))
	must(c.MarkFlagFilename("webhook-url-file"))
	for _, name := range []string{"webhook", "webhook-most", "page-url"} {
		complete(c, name, cobra.NoFileCompletions)
	}
}

func (f *alertFlags) checkAlerts() error {
	if f.alerts < 0 {
		return usagef("--webhook-most takes a whole number, not %d", f.alerts)
	}
	if f.page == "" {
		return nil
	}
	if u, err := url.Parse(f.page); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return usagef("--page-url takes an address as in https://failures.example.org")
	}
	return nil
}

// openWebhook removes the address from the environment, so that child processes do not inherit it.
func (f *alertFlags) openWebhook() (*tracker.Webhook, error) {
	at, err := tracker.WebhookAddress(f.webhook, f.webhookFile)
	if err != nil {
		return nil, usagef("--webhook: %w", err)
	}
	if at.Empty() {
		return nil, nil
	}
	w, err := tracker.OpenWebhook(at, tracker.WebhookFormat(f.webhookFormat))
	if err != nil {
		return nil, usagef("--webhook: %w", err)
	}
	return w, nil
}
