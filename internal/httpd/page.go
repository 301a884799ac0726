package httpd

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
)

// page is the status page. It needs no script and loads nothing, and its policy forbids both, so that no text of an
// upstream can become more than text.
type page struct {
	template *template.Template
	policy   string
}

// pageData is what the template reads.
type pageData struct {
	Status
	CSS     template.CSS
	URL     string // where clients connect
	Snippet string // for the configuration file of a client
	Command string
}

func newPage() *page {
	sum := sha256.Sum256([]byte(pageCSS))
	return &page{
		template: template.Must(template.New("page").Parse(pageHTML)),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}

func (d *Door) statusPage(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	if err := d.page.template.Execute(&b, d.pageData(r)); err != nil {
		panic(err) // our own template and types
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", d.page.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.Write(b.Bytes())
}

func (d *Door) pageData(r *http.Request) pageData {
	p := pageData{Status: d.status(), CSS: template.CSS(pageCSS), URL: d.clientURL(r)}
	entry := map[string]any{"type": "http", "url": p.URL}
	p.Command = "claude mcp add --transport http mcp-proxy " + p.URL
	if d.opt.Auth.Required() {
		header, value := d.opt.Auth.Header(), "Bearer YOUR-TOKEN"
		entry["headers"] = map[string]string{header: value}
		p.Command += ` --header "` + header + ": " + value + `"`
	}
	p.Snippet = indented(map[string]any{"mcpServers": map[string]any{"mcp-proxy": entry}})
	return p
}

// indented encodes for people. The HTML escaping of the encoder is off, the template does that.
func indented(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(err) // maps of strings
	}
	return strings.TrimSpace(b.String())
}

// clientURL is where clients reach the aggregate: the public URL, or the address this page was asked at. A page on the
// admin listener goes by the address of the main one.
func (d *Door) clientURL(r *http.Request) string {
	if u, err := url.Parse(d.opt.Proxy.PublicURL); err == nil && u.Host != "" {
		if strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp") {
			return u.String()
		}
		return u.JoinPath("mcp").String()
	}
	u := url.URL{Scheme: "http", Host: r.Host, Path: "/mcp"}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if d.hasAdmin() {
		u.Host = mainHost(d.opt.Listen, r.Host)
	}
	return u.String()
}

// mainHost is the address of the main listener. One that listens everywhere has no name of its own: the one that the
// admin listener was called by will do.
func mainHost(listen, asked string) string {
	name, port, err := net.SplitHostPort(listen)
	if ip, ok := parseIP(name); err == nil && (name == "" || ok && ip.IsUnspecified()) {
		return net.JoinHostPort(splitHost(asked).name, port)
	}
	return listen
}
