-- Adds a job to its queue at the turn of its tenant: start-time fair queuing, as fairness/fair-tags.ts says it, with the
-- scores of fairness/places.ts. One step with BullMQ's own script, which stands above this as bullmq_add.
-- KEYS: the nine of bullmq_add, clock (hash: v, base, cut), tags (sorted set: where the lines of each tenant end)
-- ARGV: the three of bullmq_add, id, key of the job, tenant, priority, cost (rows by weight), head start (the same),
-- pace while it overtakes, room for scores
-- Returns what bullmq_add returns.
local prioritized, clock, tags = KEYS[4], KEYS[10], KEYS[11]
local id, tenant, priority = ARGV[4], ARGV[6], tonumber(ARGV[7])
local cost, head_start, pace = tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local room = tonumber(ARGV[11])

local FIRST, ARRIVALS, PRIORITIES, PARTS = 11 * 4294967296, 256, 16, 32
local ROW = PARTS * PRIORITIES * ARRIVALS
-- So much everything is moved down when half of the room is behind (whole rows); so many jobs of it in one call.
local DOWN, MOVED_AT_ONCE = math.floor(room / 2 / ROW) * ROW, 64

-- There already: it keeps its place, and nobody is charged.
if redis.call('EXISTS', ARGV[5]) == 1 then return bullmq_add(KEYS, ARGV) end

-- v: virtual time. base: that of the first score. cut: while jobs are moved down, all below it have been.
-- Scores are counted from FIRST.
local v, base, cut = 0, 0, false
local head = redis.call('ZRANGEBYSCORE', prioritized, FIRST, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2]
if head then
  local held = redis.call('HMGET', clock, 'v', 'base', 'cut')
  local before = tonumber(held[1] or 0)
  base, cut = tonumber(held[2] or 0), held[3] and tonumber(held[3])
  head = tonumber(head) - FIRST
  if cut and head < cut - DOWN then head = head + DOWN end
  v = math.max(before, base + math.floor(head / ARRIVALS / PRIORITIES) / PARTS)
  if v > before then
    redis.call('HSET', clock, 'v', v)
    redis.call('ZREMRANGEBYSCORE', tags, '-inf', v)
  end
else
  redis.call('UNLINK', clock, tags)
end

local line = tenant .. '/' .. priority
local ends = redis.call('ZMSCORE', tags, tenant, line)
local total = math.max(v, tonumber(ends[1] or 0))
local start = math.max(v, tonumber(ends[2] or 0), total - head_start)
redis.call('ZADD', tags, total + cost, tenant, start + (start < total and cost / pace or cost), line)

local added = bullmq_add(KEYS, ARGV)

local place = math.floor((start - base) * PARTS) * PRIORITIES + priority
local score = math.min(place * ARRIVALS, room - ARRIVALS) + redis.call('ZSCORE', prioritized, id) % ARRIVALS
if cut and score < cut then score = score - DOWN end
redis.call('ZADD', prioritized, FIRST + score, id)

-- From the front on, so that at every moment what goes first stands first. All that waits stands at v or behind it.
if not cut and (v - base - 1) * ROW >= DOWN then cut = DOWN end
if cut then
  local function move_down(from, to, most)
    local jobs = redis.call('ZRANGEBYSCORE', prioritized, FIRST + from, to, 'WITHSCORES', 'LIMIT', 0, most)
    for i = 1, #jobs, 2 do redis.call('ZADD', prioritized, jobs[i + 1] - DOWN, jobs[i]) end
    return #jobs / 2, jobs[#jobs]
  end
  local count, last = move_down(cut, '+inf', MOVED_AT_ONCE)
  if count < MOVED_AT_ONCE then
    redis.call('HSET', clock, 'base', base + DOWN / ROW)
    redis.call('HDEL', clock, 'cut')
  else
    -- What has the very score of the last goes with it.
    move_down(last - FIRST, last, -1)
    redis.call('HSET', clock, 'cut', last - FIRST + 1)
  end
end
return added
