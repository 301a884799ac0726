package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// adviseCommand warns of what works today and may not tomorrow: a program found by luck, a package without a version.
func (r *reader) adviseCommand(at place, entry *node, d *draft) {
	m := entry.get("command")
	if m == nil || d.Command == "" {
		return
	}
	if filepath.Base(d.Command) == d.Command {
		r.warn(at.member(*m), m.value.line, "relative command, looked up in PATH; use an absolute path in production")
	}
	if what := unpinned(d.Command, d.Args); what != "" {
		line, where := m.value.line, at.member(*m)
		if args := entry.get("args"); args != nil {
			line, where = args.value.line, at.member(*args)
		}
		r.warn(where, line, "%s has no fixed version: every start may run other code; %s", what, pinAdvice(d.Command))
	}
}

func pinAdvice(command string) string {
	switch program(command) {
	case "docker", "podman", "nerdctl":
		return "name a tag other than latest, or a digest"
	case "uvx", "uv", "pipx":
		return "write package==1.2.3"
	}
	return "write package@1.2.3"
}

// program is the name of a command without its directory and what Windows puts behind it.
func program(command string) string {
	name := strings.ToLower(filepath.Base(command))
	for _, suffix := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// unpinned says what a package runner would fetch without a fixed version, or "".
func unpinned(command string, args []string) string {
	name := program(command)
	if name == "cmd" && len(args) > 1 && strings.EqualFold(args[0], "/c") {
		name, args = program(args[1]), args[2:]
	}
	switch name {
	case "npx", "bunx", "pnpx":
		return unpinnedNode(args)
	case "npm", "pnpm", "yarn", "bun":
		if len(args) > 0 && slices.Contains([]string{"exec", "x", "dlx"}, args[0]) {
			return unpinnedNode(args[1:])
		}
	case "uvx":
		return unpinnedPython(args)
	case "uv":
		if len(args) > 1 && args[0] == "tool" && args[1] == "run" {
			return unpinnedPython(args[2:])
		}
	case "pipx":
		if len(args) > 0 && args[0] == "run" {
			return unpinnedPython(args[1:])
		}
	case "docker", "podman", "nerdctl":
		return unpinnedImage(args)
	}
	return ""
}

// packageArg finds the package among the arguments of a runner: the value of an option that names it, or the first
// argument that is neither an option nor the value of one.
func packageArg(args, naming, valued []string) string {
	for i := 0; i < len(args); i++ {
		option, value, joined := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(naming, option) && strings.HasPrefix(option, "-"):
			if joined {
				return value
			}
			if i+1 < len(args) {
				return args[i+1]
			}
			return ""
		case slices.Contains(valued, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// isElsewhere is true for packages that do not come from a registry, or whose text we do not know.
func isElsewhere(pkg string) bool {
	return pkg == "" || strings.HasPrefix(pkg, ".") || strings.HasPrefix(pkg, "/") || strings.HasPrefix(pkg, "~") || strings.Contains(pkg, ":") || strings.Contains(pkg, `\`)
}

func unpinnedNode(args []string) string {
	pkg := packageArg(args, []string{"-p", "--package"}, []string{"-c", "--call", "-w", "--workspace", "--registry", "--cache", "--prefix"})
	if isElsewhere(pkg) {
		return ""
	}
	if at := strings.LastIndexByte(pkg, '@'); at > 0 && startsWithDigit(pkg[at+1:]) {
		return ""
	}
	return "the package"
}

func unpinnedPython(args []string) string {
	pkg := packageArg(args, []string{"--from", "--spec"}, []string{"--with", "--python", "-p", "--index-url", "--extra-index-url", "--index", "--default-index", "--cache-dir", "--directory", "--project"})
	if isElsewhere(pkg) {
		return ""
	}
	if strings.Contains(pkg, "==") {
		return ""
	}
	if _, version, ok := strings.Cut(pkg, "@"); ok && startsWithDigit(strings.TrimSpace(version)) {
		return ""
	}
	return "the package"
}

func startsWithDigit(s string) bool {
	s = strings.TrimPrefix(s, "v")
	return s != "" && s[0] >= '0' && s[0] <= '9'
}

// imageOptions are the options of "run" that take the next argument as their value.
var imageOptions = strings.Fields(`-a --attach --add-host --annotation --blkio-weight --cap-add --cap-drop --cgroup-parent --cgroupns --cidfile --cpus
	-c --cpu-shares --cpuset-cpus --cpuset-mems --detach-keys --device --dns --dns-option --dns-search --domainname --entrypoint -e --env --env-file --expose
	--gpus --group-add --health-cmd --health-interval --health-retries --health-timeout -h --hostname --ip --ip6 --ipc --isolation -l --label --label-file
	--link --log-driver --log-opt --mac-address -m --memory --memory-reservation --memory-swap --mount --name --network --net --network-alias --oom-score-adj
	--pid --pids-limit --platform -p --publish --pull --restart --runtime --secret --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl
	--tmpfs --ulimit -u --user --userns --uts -v --volume --volume-driver --volumes-from -w --workdir`)

func unpinnedImage(args []string) string {
	run := slices.Index(args, "run")
	if run < 0 {
		return ""
	}
	image := packageArg(args[run+1:], nil, imageOptions)
	if image == "" || strings.Contains(image, "@sha256:") {
		return ""
	}
	// A colon before the last slash is the port of a registry.
	_, tag, tagged := strings.Cut(image[strings.LastIndexByte(image, '/')+1:], ":")
	if tagged && tag != "latest" {
		return ""
	}
	return "the image"
}
