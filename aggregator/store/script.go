package store

// flushScript writes one chunk of a flush. The fence comes first, so that what arrives late, from
// an older owner or from an older flush of the same one, changes nothing.
//
// KEYS[1] the partition's record, KEYS[2…] the chunk's counters.
// ARGV: log id, epoch, sequence, known, rewrite (0 no, 1 its first chunk, 2 a later one), finish
// (1|0), offset, appended, owner time, clean; then for each counter: through, TTL in ms, whole (1|0),
// number of field arguments, field, value, …
// It answers {status, finished flush}: 0 written, 1 fenced (the epoch instead), 2 superseded, 3 lost.
const flushScript = `
local rec = redis.call('HMGET', KEYS[1], 'log', 'epoch', 'begun', 'flush')
local epoch, seq = tonumber(ARGV[2]), tonumber(ARGV[3])
local held = tonumber(rec[2] or '-1')
if rec[1] and (rec[1] ~= ARGV[1] or held > epoch) then return {1, held} end
local flush, begun = -1, -1
if rec[1] and held == epoch then
  flush, begun = tonumber(rec[4] or '0'), tonumber(rec[3] or '0')
  if begun > seq then return {2, flush} end
end
if flush < tonumber(ARGV[4]) and ARGV[5] == '0' then return {3, flush} end
if ARGV[5] == '2' and begun ~= seq then return {3, flush} end
redis.call('HSET', KEYS[1], 'log', ARGV[1], 'epoch', ARGV[2], 'begun', ARGV[3], 'flush', math.max(flush, 0))
local a = 11
for k = 2, #KEYS do
  if ARGV[a+2] == '1' then redis.call('DEL', KEYS[k]) end
  local n = tonumber(ARGV[a+3])
  redis.call('HSET', KEYS[k], 'through', ARGV[a], unpack(ARGV, a + 4, a + 3 + n))
  redis.call('PEXPIRE', KEYS[k], ARGV[a+1])
  a = a + 4 + n
end
if ARGV[6] == '1' then
  redis.call('HSET', KEYS[1], 'flush', ARGV[3], 'offset', ARGV[7], 'appended', ARGV[8], 'time', ARGV[9], 'clean', ARGV[10])
end
return {0, flush}
`

// claimScript writes a new owner's epoch and answers {status, the record as it was}: 0 claimed,
// 1 fenced (the newer epoch). Under another log id any epoch takes over; what the record says of the
// old log's offsets is dropped, owner time is kept. Repeating a claim changes nothing.
const claimScript = `
local rec = redis.call('HMGET', KEYS[1], 'log', 'epoch')
local held = tonumber(rec[2] or '-1')
if rec[1] == ARGV[1] and held > tonumber(ARGV[2]) then return {1, tostring(held)} end
local before = redis.call('HGETALL', KEYS[1])
redis.call('HSET', KEYS[1], 'log', ARGV[1], 'epoch', ARGV[2], 'begun', '0', 'flush', '0', 'clean', '0')
if rec[1] and rec[1] ~= ARGV[1] then
  redis.call('HSET', KEYS[1], 'offset', '-1', 'appended', '0')
end
return {0, unpack(before)}
`
