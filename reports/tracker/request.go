package tracker

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// request is an HTTP request, which may be made several times.
type request struct {
	method string
	// path is below the base, each part of it escaped.
	path  string
	query url.Values
	// body is a value that is sent as JSON; without it raw is sent, with its kind.
	body any
	raw  []byte
	kind string
	// again says that it may be carried out twice.
	again bool
	// header is sent in addition to the client's.
	header http.Header
}

func (r *request) changes() bool { return r.method != http.MethodGet }

func get(path string, query url.Values) request {
	return request{method: http.MethodGet, path: path, query: query}
}

func post(path string, body any) request {
	return request{method: http.MethodPost, path: path, body: body}
}

// upload is a form with one file.
func upload(path, field, name string, text []byte) (request, error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", `form-data; name="`+field+`"; filename="`+name+`"`)
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	part, err := form.CreatePart(h)
	if err == nil {
		_, err = part.Write(text)
	}
	if err == nil {
		err = form.Close()
	}
	return request{method: http.MethodPost, path: path, raw: b.Bytes(), kind: form.FormDataContentType()}, err
}

// route escapes the parts of a path.
func route(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("/" + url.PathEscape(fmt.Sprint(p)))
	}
	return b.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func number(n int) []string { return []string{itoa(int64(n))} }
