package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// stageOf is one stage of the Dockerfile.
type stageOf struct {
	name, image string
	lines       []string // instructions, with continuation lines joined
}

// last gives the arguments of the last instruction of that kind, which is the one that holds.
func (s stageOf) last(instruction string) string {
	for _, line := range slices.Backward(s.lines) {
		if args, ok := strings.CutPrefix(line, instruction+" "); ok {
			return args
		}
	}
	return ""
}

var fromLine = regexp.MustCompile(`^FROM (\S+) AS (\S+)$`)

// parseStages reads a Dockerfile whose every stage has a name.
func parseStages(t *testing.T, text string) []stageOf {
	t.Helper()
	text = strings.ReplaceAll(text, "\\\n", " ")
	var stages []stageOf
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := fromLine.FindStringSubmatch(line); m != nil {
			stages = append(stages, stageOf{image: m[1], name: m[2]})
			continue
		}
		if len(stages) == 0 || strings.HasPrefix(line, "FROM ") {
			t.Fatalf("%q: every stage begins with FROM IMAGE AS NAME", line)
		}
		s := &stages[len(stages)-1]
		s.lines = append(s.lines, line)
	}
	return stages
}

func readFile(t *testing.T, rel ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{repositoryRoot(t)}, rel...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDockerfileStages(t *testing.T) {
	stages := parseStages(t, readFile(t, "Dockerfile"))
	var names []string
	for _, s := range stages {
		if s.image != "scratch" && (!strings.Contains(s.image, ":") || strings.HasSuffix(s.image, ":latest")) {
			t.Errorf("stage %s: image %s has no version", s.name, s.image)
		}
		for _, line := range s.lines {
			from := regexp.MustCompile(`--from=(\S+)`).FindStringSubmatch(line)
			if from != nil && !slices.Contains(names, from[1]) {
				t.Errorf("stage %s copies from %q, which is no earlier stage", s.name, from[1])
			}
		}
		names = append(names, s.name)
	}
	if want := []string{"build", "full", "slim"}; !slices.Equal(names, want) {
		t.Fatalf("stages %q, want %q", names, want)
	}
	for _, s := range stages[1:] {
		checkImage(t, s)
	}
}

// checkImage holds what a user of an image relies on.
func checkImage(t *testing.T, s stageOf) {
	t.Helper()
	want := map[string]string{
		"USER":       "65532:65532",
		"VOLUME":     "/state",
		"WORKDIR":    "/config",
		"ENTRYPOINT": `["/mcp-proxy"]`,
		"CMD":        `["serve", "--listen", "0.0.0.0:8080"]`,
	}
	for instruction, args := range want {
		if got := s.last(instruction); got != args {
			t.Errorf("stage %s: %s %s, want %s", s.name, instruction, got, args)
		}
	}
	if !strings.HasSuffix(s.last("HEALTHCHECK"), `CMD ["/mcp-proxy", "health"]`) {
		t.Errorf("stage %s: HEALTHCHECK %s does not run the binary", s.name, s.last("HEALTHCHECK"))
	}
	if !slices.ContainsFunc(s.lines, func(line string) bool {
		return strings.HasPrefix(line, "COPY --from=build --chown=65532:65532 /out/state")
	}) {
		t.Errorf("stage %s: the volume is not writable for the user", s.name)
	}
}

// TestDockerfileGoVersion keeps the image of the build stage at the version that go.mod asks for.
func TestDockerfileGoVersion(t *testing.T) {
	m := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, "go.mod"))
	if m == nil {
		t.Fatal("go.mod names no version")
	}
	if image := parseStages(t, readFile(t, "Dockerfile"))[0].image; !strings.HasPrefix(image, "golang:"+m[1]+"-") {
		t.Errorf("the build stage uses %s, go.mod wants %s", image, m[1])
	}
}

// TestDockerContext keeps the packages of the binary in the build context, which leaves out all that is not named.
func TestDockerContext(t *testing.T) {
	ignore := strings.Split(readFile(t, ".dockerignore"), "\n")
	for _, p := range listPackages(t) {
		room := roomOf(p.ImportPath)
		if room == "" || slices.Contains(testsOnly, room) {
			continue
		}
		top, _, _ := strings.Cut(room, "/")
		if !slices.Contains(ignore, "!"+top) {
			t.Errorf(".dockerignore leaves out %s", top)
		}
	}
}

// compose is what the tests look at in deploy/compose.yaml.
type compose struct {
	Services map[string]struct {
		Build struct {
			Context, Target string
		}
		Environment map[string]string
		Volumes     []string
		Secrets     []string
	}
	Secrets map[string]struct{ Environment string }
	Volumes map[string]any
}

func TestCompose(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy", "compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	proxy := c.Services["mcp-proxy"]
	if proxy.Build.Target != "full" || proxy.Build.Context != ".." {
		t.Errorf("the proxy is built from %+v", proxy.Build)
	}
	for name, service := range c.Services {
		for _, v := range service.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if file, ok := strings.CutPrefix(source, "./"); ok {
				readFile(t, "deploy", file)
			} else if _, ok := c.Volumes[source]; !ok {
				t.Errorf("%s mounts %s, which is no volume", name, source)
			}
		}
		for _, s := range service.Secrets {
			if _, ok := proxy.Environment[c.Secrets[s].Environment]; !ok {
				t.Errorf("%s uses the secret %s, which is no token of the proxy", name, s)
			}
		}
	}
	for _, m := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(readFile(t, "deploy", "mcp-proxy.json"), -1) {
		if _, ok := proxy.Environment[m[1]]; !ok {
			t.Errorf("the configuration uses %s, which compose.yaml does not pass on", m[1])
		}
	}
}

func TestPrometheusScrapesTheProxy(t *testing.T) {
	var p struct {
		Scrape []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
			Static []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy", "prometheus.yml")), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Scrape) != 1 || len(p.Scrape[0].Static) != 1 {
		t.Fatalf("scrape configuration %+v, want one job with one list of targets", p.Scrape)
	}
	if got := p.Scrape[0].Static[0].Targets; !slices.Equal(got, []string{"mcp-proxy:8080"}) {
		t.Errorf("targets %q, want the service of compose.yaml", got)
	}
	if got := p.Scrape[0].Authorization.File; got != "/run/secrets/mcp_proxy_metrics_token" {
		t.Errorf("the token is read from %q, where compose.yaml puts none", got)
	}
}
