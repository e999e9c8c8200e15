#include "generate/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bloomery {
namespace {

constexpr const char* kNoTime = "the server ended before the answer was done";

// Of a sample or beam, for its prompt and all that may follow.
std::int64_t pages_of_sample(const EngineRequest& request) {
  return cache_pages(std::ssize(request.prompt) + request.max_tokens);
}
// Of these the first ones that no sample writes to any more when the prompt is computed.
std::int64_t shared_pages(const EngineRequest& request) {
  return request.mask_prompt ? 0 : std::ssize(request.prompt) / kCachePage;
}
std::int64_t pages_of(const EngineRequest& request) {
  const std::int64_t shared = shared_pages(request);
  return shared + request.num_sequences() * (pages_of_sample(request) - shared);
}

}  // namespace

Engine::Engine(const Model& model, Stream& stream, Mesh& mesh, const Tokenizer& tokenizer,
               const EngineOptions& options)
    : tokenizer_(tokenizer),
      stream_(stream),
      vocabulary_(model.options().vocabulary.size),
      options_(options),
      num_pages_(options.cache_tokens > 0 ? cache_pages(options.cache_tokens)
                                          : options.num_sequences * cache_pages(options.capacity)),
      decoder_(model, stream, mesh,
               {.num_sequences = options.num_sequences,
                .capacity = options.capacity,
                .num_pages = num_pages_}),
      pages_(num_pages_) {
  check(Model::decoder_begin(model.options()) == 0,
        "a model with an encoder cannot be served; `bloomery generate` runs it");
  check(options.prefill_chunk >= 1 && options.max_waiting >= 1,
        "the engine needs room for at least one token of a prompt and one waiting request");
  restart();
}

// All slots and pages are free, nothing is drawn.
void Engine::restart() {
  drawn_.reset();
  drawn_ =
      std::make_unique<BatchSampler>(decoder_, std::span<const TokenId>(), options_.num_sequences);
  free_slots_.resize(static_cast<std::size_t>(options_.num_sequences));
  std::iota(free_slots_.rbegin(), free_slots_.rend(), 0);
  pages_ = PagePool(num_pages_);
}

void Engine::check_request(const EngineRequest& r) const {
  check(!r.prompt.empty(), "the prompt has no token");
  for (const TokenId token : r.prompt) {
    check(token >= 0 && token < vocabulary_, "token id ", token,
          " is out of range: the vocabulary has ", vocabulary_, " tokens");
  }
  const std::int64_t length = std::ssize(r.prompt);
  check(r.max_tokens >= 0 && length <= options_.capacity &&
            r.max_tokens <= options_.capacity - length,
        "the prompt has ", length, " tokens and ", r.max_tokens,
        " are to follow, but there is room for ", options_.capacity, " together");
  const char* const kind = r.num_beams > 0 ? " beams" : " samples";
  check(r.num_samples >= 1 && r.num_beams >= 0 && r.num_sequences() <= options_.num_sequences,
        r.num_sequences(), kind, " were asked for, from 1 to ", options_.num_sequences,
        " can be made");
  check(pages_of(r) <= num_pages_, r.num_sequences(), kind, " of ", length, " + ", r.max_tokens,
        " tokens take ", pages_of(r) * kCachePage, " places of the cache, which has ",
        num_pages_ * kCachePage);
  check(r.num_beams == 0 || (r.max_tokens > 0 && !r.score_prompt),
        "beams are searched for at least one new token, and score no prompt");
  check(r.num_alternatives >= 0 && r.num_alternatives <= TopTokens::kMost, r.num_alternatives,
        " alternatives were asked for, there can be up to ", TopTokens::kMost);
  for (const auto& [token, bias] : r.biases) {
    check(token >= 0 && token < vocabulary_ && std::isfinite(bias), "a bias of ", bias,
          " for token ", token, ": tokens are from 0 to ", vocabulary_ - 1);
  }
  for (const std::string& stop : r.stops) {
    check(!stop.empty(), "an empty stop string would end every text at once");
  }
}

Engine::Answer Engine::submit(EngineRequest request, std::shared_ptr<EngineListener> listener) {
  std::vector<Submission> one;
  one.push_back({std::move(request), std::move(listener)});
  return submit(std::move(one));
}

Engine::Answer Engine::submit(std::vector<Submission> submissions) {
  for (const Submission& each : submissions) {
    check_request(each.request);
  }
  const std::lock_guard lock(mutex_);
  if (closed_) {
    return Answer::closed;
  }
  if (std::ssize(waiting_) >= options_.max_waiting) {
    return Answer::busy;
  }
  for (Submission& each : submissions) {
    const std::int64_t samples = each.request.num_samples;
    waiting_.push_back({.request = std::move(each.request),
                        .listener = std::move(each.listener),
                        .slots = {},
                        .pages = {},
                        .scores = {},
                        .num_going = samples,
                        .beams = nullptr,
                        .beam_slots = {}});
  }
  status_.waiting = std::ssize(waiting_);
  arrived_.notify_one();
  return Answer::accepted;
}

void Engine::close() {
  const std::lock_guard lock(mutex_);
  if (!closed_) {
    closed_ = true;
    closed_at_ = std::chrono::steady_clock::now();
  }
  arrived_.notify_one();
}

bool Engine::drained_long_enough() {
  const std::lock_guard lock(mutex_);
  return closed_ && std::chrono::steady_clock::now() - closed_at_ >
                        std::chrono::duration<double>(options_.drain_seconds);
}

void Engine::fail_waiting(const std::string& message) {
  const std::lock_guard lock(mutex_);
  for (const Request& entry : waiting_) {
    entry.listener->on_failure(message);
  }
  waiting_.clear();
}

void Engine::give_room(Request& entry) {
  const std::int64_t each = pages_of_sample(entry.request), shared = shared_pages(entry.request);
  for (std::int64_t i = 0; i < entry.request.num_sequences(); ++i) {
    entry.slots.push_back(free_slots_.back());
    free_slots_.pop_back();
    if (i == 0) {
      entry.pages.push_back(pages_.take(each));
      continue;
    }
    std::vector<std::int32_t> pages(entry.pages[0].begin(), entry.pages[0].begin() + shared);
    pages_.share(pages);
    const std::vector<std::int32_t> own = pages_.take(each - shared);
    pages.insert(pages.end(), own.begin(), own.end());
    entry.pages.push_back(std::move(pages));
  }
}

// Requests get their slots and pages in the order in which they came. Thousands may wait, so that
// those who left are looked for now and then, and at the front.
void Engine::accept() {
  constexpr std::chrono::milliseconds kSweepPeriod{50};
  const std::lock_guard lock(mutex_);
  const auto gone = [&](const Request& entry) {
    if (entry.listener->wanted()) {
      return false;
    }
    entry.listener->on_dropped();
    ++status_.dropped;
    return true;
  };
  if (const auto now = std::chrono::steady_clock::now(); now >= next_sweep_) {
    next_sweep_ = now + kSweepPeriod;
    std::erase_if(waiting_, gone);
  }
  while (!waiting_.empty()) {
    Request& first = waiting_.front();
    if (!gone(first)) {
      if (first.request.num_sequences() > std::ssize(free_slots_) ||
          pages_of(first.request) > pages_.num_free()) {
        break;
      }
      give_room(requests_.emplace_back(std::move(first)));
    }
    waiting_.pop_front();
  }
  status_.waiting = std::ssize(waiting_);
}

void Engine::release(RequestIterator entry) {
  free_slots_.insert(free_slots_.end(), entry->slots.begin(), entry->slots.end());
  for (const std::vector<std::int32_t>& pages : entry->pages) {
    pages_.give_back(pages);
  }
  requests_.erase(entry);
}

// Slots and pages of a sequence that steps in flight still write to are given to others only when
// nothing is in flight, since prompts are computed then alone.
void Engine::drop_unwanted() {
  for (auto entry = requests_.begin(); entry != requests_.end();) {
    const auto next = std::next(entry);
    if (!entry->listener->wanted()) {
      for (auto place = running_.begin(); place != running_.end();) {
        if (place->second.entry == entry) {
          drawn_->end(place->first);
          place = running_.erase(place);
        } else {
          ++place;
        }
      }
      entry->listener->on_dropped();
      ++status_.dropped;
      release(entry);
    }
    entry = next;
  }
}

void Engine::fail(const std::string& message) {
  running_.clear();
  for (const Request& entry : requests_) {
    entry.listener->on_failure(message);
  }
  requests_.clear();
  restart();
}

bool Engine::step() {
  bool idle = false;
  try {
    drop_unwanted();
    accept();
    idle = requests_.empty();
    if (!drawn_->in_flight()) {
      step_beams();
      if (prompt_waits()) {
        compute_prompts();
      }
    }
    if (!drawn_->over()) {
      for (const BatchSampler::Token& drawn : drawn_->next(!prompt_waits() && !beams_run())) {
        take(drawn);
      }
    }
    status_.steps += idle ? 0 : 1;
  } catch (const RankFailure& failure) {  // no step follows
    fail(failure.what());
    fail_waiting(failure.what());
    throw;
  } catch (const std::exception& error) {
    fail(error.what());
  }
  show_status();
  return !idle;
}

void Engine::show_status() {
  std::int64_t beams = 0;
  for (const Request& entry : requests_) {
    beams += std::ssize(entry.beam_slots);
  }
  status_.running = std::ssize(running_) + beams;
  status_.pages_taken = pages_.num_pages() - pages_.num_free();
}

void Engine::run() {
  while (true) {
    if (drained_long_enough()) {
      fail(kNoTime);
      fail_waiting(kNoTime);
    }
    if (step()) {
      continue;
    }
    std::unique_lock lock(mutex_);
    if (closed_ && waiting_.empty()) {
      return;
    }
    arrived_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
  }
}

}  // namespace bloomery
