package wire

// Plain is the result of a tool without the protocol around it.
type Plain struct {
	// Value is a JSON value: structured content as it is, one text as a string, anything else as the array of blocks.
	Value []byte
	// Text is that text where the result is one text.
	Text   string
	IsText bool
	// Failed says that the tool reports a failure of its own (2025-11-25, server/tools, "Error Handling").
	Failed bool
}

// PlainResult takes the protocol off the result of a tools/call. Its Value shares the memory of the frame.
func PlainResult(f *Frame) Plain {
	p := Plain{Failed: string(f.Body.Get(f.Raw, "isError").Of(f.Raw)) == "true"}
	if v := f.Body.Get(f.Raw, "structuredContent").Of(f.Raw); len(v) > 0 && string(v) != "null" {
		p.Value = v
		return p
	}
	content := f.Body.Get(f.Raw, "content")
	if blocks := Elements(f.Raw, content); len(blocks) == 1 {
		block, _ := ObjectAt(f.Raw, blocks[0])
		text := block.Get(f.Raw, "text").Of(f.Raw)
		if string(block.Get(f.Raw, "type").Of(f.Raw)) == `"text"` {
			if p.Text, p.IsText = DecodeString(text); p.IsText {
				p.Value = text
				return p
			}
		}
	}
	if p.Value = content.Of(f.Raw); len(p.Value) == 0 || p.Value[0] != '[' {
		p.Value = []byte("[]")
	}
	return p
}
