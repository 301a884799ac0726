package search

import (
	"fmt"
	"strings"
	"testing"
)

// searched makes an index of tools, each written as "name" or "name: description".
func searched(tools ...string) *Index {
	all := make([]Tool, len(tools))
	for i, text := range tools {
		name, desc, _ := strings.Cut(text, ": ")
		all[i] = Tool{Name: "s__" + name, Wire: name, Description: NewText(desc)}
	}
	return New(len(all), func(i int) Tool { return all[i] })
}

func found(x *Index, query string) string {
	var names []string
	best, _ := x.Find(query, 100)
	for _, i := range best {
		names = append(names, x.tools[i].Wire)
	}
	return strings.Join(names, " ")
}

// most is how many tools are asked for.
const most = 20

func TestSearchFindsTheRightTools(t *testing.T) {
	tools := searched(
		"create_issue: Opens a new issue in a repository",
		"issue_write: Creates or updates an issue",
		"list_issues: Lists the issues of a repository",
		"getWeather: Current weather of a city",
		"read_file: Reads a file from the disk",
		"read_multiple_files: Reads several files at once",
		"search_code: Finds text in the files of a repository",
		"send_mail: Sends a letter to a person, with attachments",
		"tool_7: Tool number 7 of many",
		"tool_17: Tool number 17 of many",
		"übersetzen: Übersetzt Texte",
		"搜索文件: 在磁盘上查找文件",
	)
	for _, c := range []struct{ name, query, want string }{
		{"a name", "read_file", "read_file read_multiple_files"},
		{"an exposed name", "s__read_file", "read_file read_multiple_files"},
		{"case makes no difference", "READ_FILE", "read_file read_multiple_files"},
		{"a part of a name before descriptions", "issue", "issue_write create_issue list_issues"},
		{"names before descriptions", "search", "search_code"},
		{"all words, whatever their order", "issue create", "create_issue issue_write"},
		{"words of name and description", "weather city", "getWeather"},
		{"the parts of a joined name", "get weather", "getWeather"},
		{"the beginning of a word", "attach", "send_mail"},
		{"a part of a word", "eather", "getWeather"},
		{"plurals", "multiple file", "read_multiple_files"},
		{"singulars", "code repositories", "search_code"},
		{"words that say nothing", "a tool to read the file", "read_file read_multiple_files"},
		{"a phrase of a description", "number 7 of", "tool_7"},
		{"a number is a number", "number 7", "tool_7"},
		{"a letter too little", "wether", "getWeather"},
		{"two letters swapped", "reopsitory code", "search_code"},
		{"a letter too much in one of two words", "send maill", "send_mail"},
		{"short words are taken as they are", "zt", "übersetzen"},
		{"letters beyond ASCII", "ÜBERSETZEN", "übersetzen"},
		{"scripts without blanks", "文件", "搜索文件"},
		{"what nothing has", "quantum", ""},
		{"where nothing has all words, those with the rarest first", "weather repository chess", "getWeather list_issues search_code create_issue"},
		{"only signs", "%%", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := found(tools, c.query); got != c.want {
				t.Errorf("%q finds %q, want %q", c.query, got, c.want)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"file", "file", 0}, {"file", "fiel", 1}, {"file", "files", 1}, {"file", "ile", 1}, {"file", "mile", 1}, {"weather", "wether", 1},
		{"repository", "repositroy", 1}, {"repository", "repsitroy", 2}, {"file", "folder", 3}, {"", "abc", 3}, {"abcd", "dcba", 3},
	} {
		most := max(c.want, 2)
		for _, got := range []int{distance(c.a, c.b, most), distance(c.b, c.a, most)} {
			if got != min(c.want, most+1) {
				t.Errorf("%q and %q differ by %d, want %d", c.a, c.b, got, c.want)
			}
		}
	}
}

// many are the tools of a large company.
func many(n int) []string {
	verbs := []string{"create", "list", "get", "update", "delete", "search", "export", "archive", "assign", "approve"}
	things := []string{"invoice", "customer", "ticket", "repository", "deployment", "calendar", "document", "payment", "shipment", "employee", "contract", "budget"}
	out := make([]string, n)
	for i := range out {
		v, th := verbs[i%len(verbs)], things[i/len(verbs)%len(things)]
		out[i] = fmt.Sprintf("%s_%s_%04d: Use this to %s a %s of the department %d. Needs the rights of the department and gives the %s with all of its fields.", v, th, i, v, th, i, th)
	}
	return out
}

func TestSearchOfManyTools(t *testing.T) {
	x := searched(many(6000)...)
	for query, want := range map[string]int{"approve payment": 50, "create_invoice_0000": 1, "department": 6000, "aprove paymnet": 50} {
		best, total := x.Find(query, most)
		if total != want || len(best) != min(want, most) {
			t.Errorf("%q finds %d, want %d", query, total, want)
		}
	}
}

// A query is a client's, and may be anything.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"read file", "", " ", "\x00", strings.Repeat("ab ", 1000), "文件", "ſ", "İstanbul", "a\nb", "s__"} {
		f.Add(q)
	}
	x := searched("read_file: Reads", "übersetzen: Übersetzt", "搜索文件: 文", "x")
	f.Fuzz(func(t *testing.T, query string) {
		best, n := x.Find(query, 3)
		if len(best) != min(n, 3) {
			t.Errorf("%q finds %d and gives %d", query, n, len(best))
		}
		if n > 4 {
			t.Errorf("%q finds %d of 4 tools", query, n)
		}
		if q := strings.ToLower(strings.TrimSpace(query)); q != "" && len(q) <= maxQuery && strings.Contains("read_file", q) && n == 0 {
			t.Errorf("%q is a part of a name and finds nothing", query)
		}
	})
}

// BenchmarkSearch tells how long searches over the tools of a large company take.
func BenchmarkSearch(b *testing.B) {
	x := searched(many(6000)...)
	x.Find("x", 1)
	for name, query := range map[string]string{
		"word": "payment", "words": "approve the payment of a department", "everything": "department", "typo": "aprove paymnet", "nothing": "quantum chess",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x.Find(query, most)
			}
		})
	}
}

// BenchmarkFirstSearch makes the index, as the first search after a change of the catalog does.
func BenchmarkFirstSearch(b *testing.B) {
	x := searched(many(6000)...)
	for b.Loop() {
		New(x.n, x.tool).Find("payment", most)
	}
}
