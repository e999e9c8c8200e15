#include "comm/threads.h"

#include <algorithm>
#include <cstring>

#include "comm/call_checks.h"
#include "comm/reduce.h"
#include "comm/rendezvous.h"
#include "device/recorded.h"

namespace bloomery {
namespace {

// Slices of an all-reduce start at multiples of this, so that vector accesses stay aligned.
constexpr std::int64_t kSliceAlignment = 64;

const char* name(Reduce reduce) { return reduce == Reduce::sum ? "sum" : "max"; }

// Work inside a call: on a CPU it happens now, for the call already has its turn in the stream.
void copy_now(Stream& stream, void* to, const void* from, std::int64_t elements, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  if (bytes == 0 || to == from) {
    return;
  }
  if (stream.on_cuda()) {
    stream.copy(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void reduce_now(Stream& stream, const RankReduce& reduce) {
  if constexpr (build::cuda) {
    if (stream.on_cuda()) {
      return run(OnCuda{}, stream, reduce);
    }
  }
  launch_cpu(stream, reduce);
}

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank)
      : group_(std::move(group)),
        rank_(rank),
        host_(make_thread_host_group(group_, rank)),
        next_send_(group_->size()),
        next_receive_(group_->size()) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  // Rank r reduces slice r of all buffers and writes it to all of them: nobody else touches that
  // slice, so this is in place without scratch.
  void all_reduce(View data, Reduce reduce, Stream& stream) override {
    Post post = reduction("all_reduce", reduce, data, stream);
    post.in = data.data;
    const std::int64_t count = data.numel();
    const std::int64_t even = (count + size() - 1) / size();
    const std::int64_t slice = (even + kSliceAlignment - 1) / kSliceAlignment * kSliceAlignment;
    const std::int64_t begin = std::min(count, slice * rank_);
    const std::int64_t end = std::min(count, begin + slice);
    perform(std::move(post), stream, [=](Stream& on, const Posts& posts) {
      RankReduce work{.dtype = data.dtype, .count = end - begin, .reduce = reduce};
      for (const Post& peer : posts) {
        work.inputs[work.num_inputs++] = offset(peer.in, begin, data.dtype);
        work.outputs[work.num_outputs++] = offset(peer.in, begin, data.dtype);
      }
      reduce_now(on, work);
    });
  }

  void all_gather(ConstView part, View whole, Stream& stream) override {
    Post post = announced("all_gather", part, stream);
    post.out = part.data;
    post.problem = all_gather_problem(part, whole, rank_, size());
    perform(std::move(post), stream, [=](Stream& on, const Posts& posts) {
      for (std::size_t peer = 0; peer < posts.size(); ++peer) {
        const std::int64_t place = part.numel() * static_cast<std::int64_t>(peer);
        copy_now(on, offset(whole.data, place, part.dtype), posts[peer].out, part.numel(),
                 part.dtype);
      }
    });
  }

  void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) override {
    Post post = reduction("reduce_scatter", reduce, part, stream);
    post.out = whole.data;
    if (post.problem.empty()) {
      post.problem = reduce_scatter_problem(whole, part, rank_, size());
    }
    perform(std::move(post), stream, [=, rank = rank_](Stream& on, const Posts& posts) {
      RankReduce work{.dtype = part.dtype, .count = part.numel(), .reduce = reduce};
      for (const Post& peer : posts) {
        work.inputs[work.num_inputs++] = offset(peer.out, part.numel() * rank, part.dtype);
      }
      work.outputs[work.num_outputs++] = part.data;
      reduce_now(on, work);
    });
  }

  void broadcast(View data, int root, Stream& stream) override {
    Post post = announced("broadcast", data, stream);
    post.detail = concat("from rank ", root);
    post.out = data.data;
    post.problem = root_problem(root, size());
    perform(std::move(post), stream, [=](Stream& on, const Posts& posts) {
      copy_now(on, data.data, posts[root].out, data.numel(), data.dtype);
    });
  }

  void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) override {
    Post post = announced("all_to_all", out, stream);
    const std::int64_t row = row_elements(out.shape);
    post.count = row;
    post.out = out.data;
    post.counts = counts;
    post.problem = all_to_all_problem(out, in, counts, size());
    perform(std::move(post), stream, [=, rank = rank_](Stream& on, const Posts& posts) {
      std::int64_t place = 0;
      for (const Post& peer : posts) {
        const std::int64_t first = sum_of(peer.counts.out, rank);
        const std::int64_t rows = peer.counts.out[rank];
        copy_now(on, offset(in.data, place * row, in.dtype),
                 offset(peer.out, first * row, in.dtype), rows * row, in.dtype);
        place += rows;
      }
    });
  }

  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    std::vector<Numbered> numbered;
    for (const Transfer& transfer : transfers) {
      const int peer = transfer.peer;
      check(peer >= 0 && peer < size(), "exchange: there is no rank ", peer, " among ", size());
      numbered.push_back({transfer, transfer.kind == Transfer::Kind::send
                                        ? ThreadGroup::Route{rank_, peer, next_send_[peer]++}
                                        : ThreadGroup::Route{peer, rank_, next_receive_[peer]++}});
    }
    run_on(stream, "exchange", [group = group_, numbered = std::move(numbered)](Stream& on) {
      exchange_now(*group, numbered, on);
    });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    Post post;
    post.name = "split";
    post.color = color;
    post.key = key;
    post.group = std::make_shared<ThreadGroup>(group_->world(), std::vector<int>{});
    std::shared_ptr<ThreadGroup> group;
    int place = 0;
    group_->meet(next_call_++, rank_, std::move(post), [&](const Posts& posts) {
      const std::vector<int> members = members_of(posts, color);
      group = posts[members.front()].group;
      place = static_cast<int>(std::find(members.begin(), members.end(), rank_) - members.begin());
      if (place == 0) {
        std::vector<int> world_ranks;
        for (const int member : members) {
          world_ranks.push_back(group_->world_rank(member));
        }
        group->set_members(std::move(world_ranks));
      }
      return nullptr;
    });
    return std::make_unique<ThreadCommunicator>(std::move(group), place);
  }

  HostGroup& host() override { return *host_; }

 private:
  struct Numbered {
    Transfer transfer;
    ThreadGroup::Route route;
  };
  using Work = std::function<void(Stream&, const Posts&)>;

  static Post announced(const char* name, ConstView data, const Stream& stream) {
    Post post;
    post.name = name;
    post.dtype = data.dtype;
    post.count = data.numel();
    post.on_cuda = stream.on_cuda();
    return post;
  }

  Post reduction(const char* call, Reduce reduce, ConstView data, const Stream& stream) const {
    Post post = announced(call, data, stream);
    post.detail = name(reduce);
    post.problem = reduce_problem(data.dtype);
    if (size() > RankReduce::kMaxRanks) {
      post.problem = concat("at most ", RankReduce::kMaxRanks, " threads can reduce together");
    }
    return post;
  }

  void run_on(Stream& stream, const char* name, const std::function<void(Stream&)>& work) {
    const OpScope scope(stream, name, OpKind::communication);
    if (stream.on_cuda()) {  // timed as a whole: waiting for the others is part of it
      return timed_launch(stream, [&] { work(stream); });
    }
    stream.submit([&stream, work] { work(stream); },
                  [world = group_->world(), rank = group_->world_rank(rank_)] {
                    world->fail(rank, "it stopped with an exception of its own");
                  });
  }

  void perform(Post post, Stream& stream, Work work) {
    const char* const name = post.name;
    run_on(stream, name,
           [group = group_, rank = rank_, number = next_call_++, post = std::move(post),
            work = std::move(work)](Stream& on) {
             Post mine = post;
             const bool on_cuda = on.on_cuda();
             mine.ready = on_cuda ? recorded(on) : nullptr;
             const auto done = group->meet(number, rank, std::move(mine), [&](const Posts& posts) {
               for (const Post& peer : posts) {
                 if (on_cuda) {
                   on.wait(*peer.ready);
                 }
               }
               work(on, posts);
               return on_cuda ? recorded(on) : nullptr;
             });
             for (const std::shared_ptr<Event>& event : done) {
               if (event) {
                 on.wait(*event);
               }
             }
           });
  }

  static void exchange_now(ThreadGroup& group, const std::vector<Numbered>& all, Stream& stream) {
    const bool on_cuda = stream.on_cuda();
    const std::shared_ptr<Event> ready = on_cuda ? recorded(stream) : nullptr;
    std::string problem;
    try {
      for (const auto& [transfer, route] : all) {
        if (transfer.kind == Transfer::Kind::send) {
          group.post(route, transfer.data, ready);
        }
      }
      for (const auto& [transfer, route] : all) {
        if (transfer.kind == Transfer::Kind::receive) {
          const View into = transfer.data;
          problem += group.take(route, into, [&](const Message& message) {
            if (on_cuda) {
              stream.wait(*message.ready);
            }
            copy_now(stream, into.data, message.data.data, into.numel(), into.dtype);
            return on_cuda ? recorded(stream) : nullptr;
          });
        }
      }
      for (const auto& [transfer, route] : all) {
        if (transfer.kind == Transfer::Kind::send) {
          const Message message = group.await_copied(route);
          problem += problem.empty() ? message.problem : "";
          if (message.done) {
            stream.wait(*message.done);
          }
        }
      }
    } catch (...) {
      for (const auto& [transfer, route] : all) {
        if (transfer.kind == Transfer::Kind::send) {
          group.withdraw(route);
        }
      }
      throw;
    }
    check(problem.empty(), problem);
  }

  // Ranks of this color, by key and then by rank.
  static std::vector<int> members_of(const Posts& posts, int color) {
    std::vector<int> members;
    for (int i = 0; i < static_cast<int>(posts.size()); ++i) {
      if (posts[i].color == color) {
        members.push_back(i);
      }
    }
    std::stable_sort(members.begin(), members.end(),
                     [&](int a, int b) { return posts[a].key < posts[b].key; });
    return members;
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  const std::unique_ptr<HostGroup> host_;
  std::int64_t next_call_ = 0;
  std::vector<std::int64_t> next_send_, next_receive_;  // per peer
};

}  // namespace

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group,
                                                       int rank) {
  return std::make_unique<ThreadCommunicator>(std::move(group), rank);
}

}  // namespace bloomery
