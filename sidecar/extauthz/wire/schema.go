package wire

// message is a type of message below a CheckRequest. Some types have two: one that is read, one that is
// only checked.
type message uint8

const (
	checkRequest message = iota
	attributes
	source
	sourceAddress
	sourceSocket
	request
	httpRequest
	headerEntry
	headerMap
	headerValue
	extensionEntry
	metadata
	metadataEntry
	peer
	address
	socketAddress
	pipe
	internalAddress
	textEntry
	otherMetadata
	structEntry
	anyEntry
	anyValue
	structValue
	valueEntry
	value
	listValue
	tlsSession
	timestamp
	messages
)

// kind says what the bytes of a length-delimited field are.
type kind uint8

const (
	plain  kind = iota // unknown, bytes, or a number: nothing to check
	text               // a string: UTF-8
	nested             // a message
	mapped             // an entry of a map
)

// take says what is done with a field's bytes once they are checked.
type take uint8

const (
	ignore take = iota
	takeMethod
	takePath
	takeHost
	takePrincipal
	takeAddress
	dropAddress // another kind of address takes the place of a socket's
	takeKey
	takeValue
	takeRawValue
	endRequest
	endHeader
	endRawHeader
	endExtension
	endMetadata
)

// field is a field of a message. Into: nested and mapped ones only.
type field struct {
	kind kind
	into message
	take take
}

// maxField is the highest field number of any message.
const maxField = 13

// schema has each message's fields by number. It is never changed; a test holds it to the generated
// code's descriptors, so that an update of these cannot go unnoticed.
var schema = [messages][maxField + 1]field{
	checkRequest: {1: {kind: nested, into: attributes}},
	attributes: {
		1:  {kind: nested, into: source},
		2:  {kind: nested, into: peer},
		4:  {kind: nested, into: request},
		10: {kind: mapped, into: extensionEntry, take: endExtension},
		11: {kind: nested, into: metadata},
		12: {kind: nested, into: tlsSession},
		13: {kind: nested, into: otherMetadata},
	},
	source: {
		1: {kind: nested, into: sourceAddress},
		2: {kind: text},
		3: {kind: mapped, into: textEntry},
		4: {kind: text, take: takePrincipal},
		5: {kind: text},
	},
	sourceAddress: {
		1: {kind: nested, into: sourceSocket},
		2: {kind: nested, into: pipe, take: dropAddress},
		3: {kind: nested, into: internalAddress, take: dropAddress},
	},
	sourceSocket: {2: {kind: text, take: takeAddress}, 4: {kind: text}, 5: {kind: text}, 7: {kind: text}},
	request: {
		1: {kind: nested, into: timestamp},
		2: {kind: nested, into: httpRequest, take: endRequest},
	},
	httpRequest: {
		1:  {kind: text},
		2:  {kind: text, take: takeMethod},
		3:  {kind: mapped, into: headerEntry, take: endHeader},
		4:  {kind: text, take: takePath},
		5:  {kind: text, take: takeHost},
		6:  {kind: text},
		7:  {kind: text},
		8:  {kind: text},
		10: {kind: text},
		11: {kind: text},
		13: {kind: nested, into: headerMap},
	},
	headerEntry:    {1: {kind: text, take: takeKey}, 2: {kind: text, take: takeValue}},
	headerMap:      {1: {kind: nested, into: headerValue, take: endRawHeader}},
	headerValue:    {1: {kind: text, take: takeKey}, 2: {kind: text, take: takeValue}, 3: {take: takeRawValue}},
	extensionEntry: {1: {kind: text, take: takeKey}, 2: {kind: text, take: takeValue}},
	metadata: {
		1: {kind: mapped, into: metadataEntry, take: endMetadata},
		2: {kind: mapped, into: anyEntry},
	},
	metadataEntry: {1: {kind: text, take: takeKey}, 2: {kind: nested, into: structValue}},

	peer: {
		1: {kind: nested, into: address},
		2: {kind: text},
		3: {kind: mapped, into: textEntry},
		4: {kind: text},
		5: {kind: text},
	},
	address: {
		1: {kind: nested, into: socketAddress},
		2: {kind: nested, into: pipe},
		3: {kind: nested, into: internalAddress},
	},
	socketAddress:   {2: {kind: text}, 4: {kind: text}, 5: {kind: text}, 7: {kind: text}},
	pipe:            {1: {kind: text}},
	internalAddress: {1: {kind: text}, 2: {kind: text}},
	textEntry:       {1: {kind: text}, 2: {kind: text}},
	otherMetadata:   {1: {kind: mapped, into: structEntry}, 2: {kind: mapped, into: anyEntry}},
	structEntry:     {1: {kind: text}, 2: {kind: nested, into: structValue}},
	anyEntry:        {1: {kind: text}, 2: {kind: nested, into: anyValue}},
	anyValue:        {1: {kind: text}},
	structValue:     {1: {kind: mapped, into: valueEntry}},
	valueEntry:      {1: {kind: text}, 2: {kind: nested, into: value}},
	value:           {3: {kind: text}, 5: {kind: nested, into: structValue}, 6: {kind: nested, into: listValue}},
	listValue:       {1: {kind: nested, into: value}},
	tlsSession:      {1: {kind: text}},
}
