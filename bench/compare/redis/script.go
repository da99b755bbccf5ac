package redis

// script is a token bucket as it is often written for Redis. The time is the
// server's, so that the bucket does not depend on callers' clocks. A bucket that is
// full again is forgotten.
//
// KEYS[1] bucket; ARGV[1] tokens a second, ARGV[2] burst, ARGV[3] tokens asked for.
const script = `
local rate, burst, asked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bucket = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
level = math.min(burst, level + math.max(0, now - at) * rate / 1000000)
local granted = 0
if level >= asked then
  level, granted = level - asked, 1
end
redis.call('HSET', KEYS[1], 'level', level, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((burst - level) * 1000 / rate) + 1000)
return granted
`
