#include "comm/rendezvous.h"

#include <exception>
#include <utility>

namespace bloomery {

ThreadGroup::Events ThreadGroup::meet(std::int64_t number, int rank, Post post, const Work& work) {
  Meeting& meeting = arrive(number, rank, std::move(post));
  const std::string problem = disagreement(meeting.posts, *this);
  std::shared_ptr<Event> done;
  std::exception_ptr thrown;
  if (problem.empty()) {
    try {
      done = work(meeting.posts);
    } catch (const std::exception& error) {
      thrown = std::current_exception();
      world_->fail(world_rank(rank), error.what());
    } catch (...) {  // whatever it is, the others wait for this rank to depart
      thrown = std::current_exception();
      world_->fail(world_rank(rank), "an unknown exception");
    }
  }
  Events events = depart(number, meeting, rank, std::move(done));
  check(problem.empty(), problem);
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  return events;
}

ThreadGroup::Meeting& ThreadGroup::arrive(std::int64_t number, int rank, Post post) {
  World::Lock lock = world_->lock();
  world_->throw_if_failed();
  const char* const name = post.name;
  Meeting& meeting = meetings_[number];
  meeting.posts.resize(size());
  meeting.here.resize(size());
  meeting.posts[rank] = std::move(post);
  meeting.here[rank] = true;
  if (++meeting.num_here == size()) {
    world_->notify();
    return meeting;
  }
  try {
    world_->wait(
        lock, world_rank(rank), [&] { return meeting.num_here == size(); },
        [&] { return missing_text(meeting.here, rank, name, world_->timeout_seconds()); });
  } catch (...) {
    // Nobody comes to a failed world any more, so the meeting stays incomplete for all who wait.
    meeting.here[rank] = false;
    if (--meeting.num_here == 0) {
      meetings_.erase(number);
    }
    throw;
  }
  return meeting;
}

ThreadGroup::Events ThreadGroup::depart(std::int64_t number, Meeting& meeting, int rank,
                                        std::shared_ptr<Event> done) {
  World::Lock lock = world_->lock();
  meeting.posts[rank].done = std::move(done);
  if (++meeting.num_done == size()) {
    world_->notify();
  }
  world_->wait_briefly(lock, [&] { return meeting.num_done == size(); });
  Events events;
  for (const Post& post : meeting.posts) {
    events.push_back(post.done);
  }
  if (++meeting.num_gone == size()) {
    meetings_.erase(number);
  }
  return events;
}

std::string ThreadGroup::missing_text(const std::vector<bool>& here, int rank,
                                      const std::string& what, double seconds) const {
  std::string absent;
  for (int i = 0; i < size(); ++i) {
    if (!here[i]) {
      absent += concat(absent.empty() ? "" : ", ", world_rank(i));
    }
  }
  return concat("rank ", world_rank(rank), " waited ", seconds, " s in ", what, " for rank(s) ",
                absent,
                ", which did not come: all ranks of a group must make the "
                "same calls");
}

void ThreadGroup::post(const Route& route, ConstView data, std::shared_ptr<Event> ready) {
  {
    const World::Lock lock = world_->lock();
    world_->throw_if_failed();
    messages_[route] = {Message::Stage::posted, data, {}, std::move(ready), nullptr};
  }
  world_->notify();
}

std::string ThreadGroup::take(const Route& route, ConstView into,
                              const std::function<std::shared_ptr<Event>(const Message&)>& copy) {
  World::Lock lock = world_->lock();
  world_->wait(
      lock, world_rank(route.to), [&] { return messages_.contains(route); },
      [&] {
        return concat("rank ", world_rank(route.to), " waited ", world_->timeout_seconds(),
                      " s in exchange for message ", route.number, " from rank ",
                      world_rank(route.from), ", which did not send it");
      });
  world_->throw_if_failed();
  Message& message = messages_[route];
  message.stage = Message::Stage::taken;
  lock.unlock();
  std::exception_ptr thrown;
  std::string problem;
  if (message.data.numel() != into.numel() || message.data.dtype != into.dtype) {
    problem = concat("exchange: rank ", world_rank(route.from), " sends ", message.data.dtype,
                     message.data.shape, ", but rank ", world_rank(route.to), " receives ",
                     into.dtype, into.shape);
  } else {
    try {
      message.done = copy(message);
    } catch (...) {
      thrown = std::current_exception();
      problem = concat("exchange: rank ", world_rank(route.to), " could not copy");
    }
  }
  lock.lock();
  message.problem = problem;
  message.stage = Message::Stage::copied;
  lock.unlock();
  world_->notify();
  if (thrown) {
    std::rethrow_exception(thrown);
  }
  return problem;
}

Message ThreadGroup::await_copied(const Route& route) {
  World::Lock lock = world_->lock();
  Message& message = messages_[route];
  world_->wait(
      lock, world_rank(route.from), [&] { return message.stage == Message::Stage::copied; },
      [&] {
        return concat("rank ", world_rank(route.from), " waited ", world_->timeout_seconds(),
                      " s in exchange for rank ", world_rank(route.to), " to receive message ",
                      route.number);
      });
  Message copied = std::move(message);
  messages_.erase(route);
  return copied;
}

void ThreadGroup::withdraw(const Route& route) noexcept {
  World::Lock lock = world_->lock();
  const auto found = messages_.find(route);
  if (found != messages_.end()) {
    world_->wait_briefly(lock, [&] { return found->second.stage != Message::Stage::taken; });
    messages_.erase(found);
  }
}

std::vector<std::string> ThreadGroup::gather(const std::string& topic, std::int64_t number,
                                             int rank, std::string message, double seconds,
                                             int root) {
  World::Lock lock = world_->lock();
  world_->throw_if_failed();
  Letters& letters = letters_[{topic, number}];
  letters.messages.resize(size());
  letters.here.resize(size());
  letters.messages[rank] = std::move(message);
  letters.here[rank] = true;
  if (++letters.num_here == size()) {
    world_->notify();
  }
  if (root != kNoRoot && rank != root) {
    return {};
  }
  world_->wait(
      lock, world_rank(rank), [&] { return letters.num_here == size(); },
      [&] {
        const double waited = seconds > 0 ? seconds : world_->timeout_seconds();
        return missing_text(letters.here, rank, topic, waited);
      },
      seconds);
  ++letters.num_gone;
  if (root == kNoRoot && letters.num_gone < size()) {
    return letters.messages;
  }
  return std::move(letters_.extract({topic, number}).mapped().messages);
}

namespace {

std::string description(const Post& post) {
  return concat(post.name, post.detail.empty() ? "" : " ", post.detail, " of ", post.count, " ",
                post.dtype, post.on_cuda ? " on a GPU" : "");
}

bool same_call(const Post& a, const Post& b) {
  return std::string_view(a.name) == b.name && a.detail == b.detail && a.dtype == b.dtype &&
         a.count == b.count && a.on_cuda == b.on_cuda;
}

}  // namespace

std::string disagreement(const Posts& posts, const ThreadGroup& group) {
  const int size = static_cast<int>(posts.size());
  for (int i = 0; i < size; ++i) {
    if (!posts[i].problem.empty()) {
      return concat("rank ", group.world_rank(i), ": ", posts[i].name, ": ", posts[i].problem);
    }
    if (!same_call(posts[0], posts[i])) {
      return concat("the ranks disagree: rank ", group.world_rank(0), " calls ",
                    description(posts[0]), ", rank ", group.world_rank(i), " calls ",
                    description(posts[i]));
    }
  }
  for (int from = 0; from < size && !posts[from].counts.out.empty(); ++from) {
    for (int to = 0; to < size; ++to) {
      if (posts[from].counts.out[to] != posts[to].counts.in[from]) {
        return concat("all_to_all: rank ", group.world_rank(from), " sends ",
                      posts[from].counts.out[to], " rows to rank ", group.world_rank(to),
                      ", which expects ", posts[to].counts.in[from]);
      }
    }
  }
  return {};
}

}  // namespace bloomery
