#include "base/block_io.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"

namespace bloomery {

// A transfer as its blocks, of which some may be done.
struct Blocks {
  int file;
  BlockIo::Direction direction;
  std::uint64_t offset;
  char* memory;
  std::size_t bytes, block_bytes;

  std::size_t count() const { return (bytes + block_bytes - 1) / block_bytes; }
  std::size_t begin(std::size_t block) const { return block * block_bytes; }
  std::size_t end(std::size_t block) const { return std::min(bytes, begin(block) + block_bytes); }
};

class BlockIo::Method {
 public:
  virtual ~Method() = default;
  virtual int run(const Blocks& blocks) = 0;  // 0, or the errno of the first failure
  virtual const char* name() const = 0;
};

class BlockIo::Threads final : public Method {
 public:
  explicit Threads(int threads) : pool_(std::max(1, threads)) {}

  int run(const Blocks& blocks) override {
    std::atomic<int> failure{0};
    pool_.for_each(static_cast<std::int64_t>(blocks.count()), [&](std::int64_t block) {
      const int status = failure == 0 ? transfer(blocks, static_cast<std::size_t>(block)) : 0;
      if (status != 0) {
        failure = status;
      }
    });
    return failure;
  }
  const char* name() const override { return "threads"; }

 private:
  static int transfer(const Blocks& b, std::size_t block) {
    for (std::size_t at = b.begin(block); at < b.end(block);) {
      const auto offset = static_cast<off_t>(b.offset + at);
      const std::size_t bytes = b.end(block) - at;
      const ssize_t done = b.direction == Direction::read
                               ? pread(b.file, b.memory + at, bytes, offset)
                               : pwrite(b.file, b.memory + at, bytes, offset);
      if (done < 0 && errno == EINTR) {
        continue;
      }
      if (done <= 0) {
        return done < 0 ? errno : EIO;  // nothing at all: the file was cut short
      }
      at += static_cast<std::size_t>(done);
    }
    return 0;
  }

  ThreadPool pool_;
};

// The kernel's queues, by its system calls alone: entries of submissions and of completions lie in
// memory that both sides map.
class BlockIo::Ring final : public Method {
 public:
  static std::unique_ptr<Ring> open(int depth) {
    auto ring = std::unique_ptr<Ring>(new Ring);
    return ring->start(static_cast<unsigned>(std::clamp(depth, 1, 4096))) ? std::move(ring)
                                                                          : nullptr;
  }
  ~Ring() override {
    for (const Mapping& each : {submissions_, completions_, entries_}) {
      if (each.at != nullptr) {
        munmap(each.at, each.bytes);
      }
    }
    if (file_ >= 0) {
      close(file_);
    }
  }

  int run(const Blocks& blocks) override {
    std::vector<std::size_t> at(blocks.count());  // how far each block is
    for (std::size_t i = 0; i < at.size(); ++i) {
      at[i] = blocks.begin(i);
    }
    std::vector<std::size_t> again;  // blocks that came back incomplete
    std::size_t next = 0;
    unsigned under_way = 0;
    int failure = 0;
    while (under_way > 0 || (failure == 0 && (next < at.size() || !again.empty()))) {
      unsigned added = 0;
      while (failure == 0 && under_way < depth_ && (next < at.size() || !again.empty())) {
        const std::size_t block = again.empty() ? next++ : again.back();
        if (!again.empty()) {
          again.pop_back();
        }
        add(blocks, block, at[block]);
        ++added;
        ++under_way;
      }
      if (const int status = enter(added); status != 0) {
        failure = failure != 0 ? failure : status;
        under_way -= take_back(added);
        usleep(kPause);  // what the kernel has it goes on with, in memory that is the caller's
      }
      under_way -= reap(blocks, at, again, failure);
    }
    return failure;
  }
  const char* name() const override { return "io_uring"; }

 private:
  struct Mapping {
    void* at = nullptr;
    std::size_t bytes = 0;
    template <class T>
    T* as(unsigned offset) const {
      return reinterpret_cast<T*>(static_cast<char*>(at) + offset);
    }
  };
  Ring() = default;
  static constexpr useconds_t kPause = 1000;

  Mapping map(std::size_t bytes, off_t what) const {
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file_, what);
    return at == MAP_FAILED ? Mapping{} : Mapping{at, bytes};
  }

  bool start(unsigned depth) {
    file_ = static_cast<int>(syscall(__NR_io_uring_setup, depth, &parameters_));
    if (file_ < 0) {
      return false;  // an old kernel, or one that forbids it
    }
    const io_sqring_offsets& sq = parameters_.sq_off;
    const io_cqring_offsets& cq = parameters_.cq_off;
    submissions_ = map(sq.array + parameters_.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    completions_ = map(cq.cqes + parameters_.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
    entries_ = map(parameters_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    depth_ = depth;
    return submissions_.at != nullptr && completions_.at != nullptr && entries_.at != nullptr;
  }

  void add(const Blocks& b, std::size_t block, std::size_t at) {
    const io_sqring_offsets& sq = parameters_.sq_off;
    const std::atomic_ref<unsigned> tail(*submissions_.as<unsigned>(sq.tail));
    const unsigned place =
        tail.load(std::memory_order_relaxed) & *submissions_.as<unsigned>(sq.ring_mask);
    io_uring_sqe& entry = static_cast<io_uring_sqe*>(entries_.at)[place];
    std::memset(&entry, 0, sizeof entry);
    entry.opcode = b.direction == Direction::read ? IORING_OP_READ : IORING_OP_WRITE;
    entry.fd = b.file;
    entry.addr = reinterpret_cast<std::uintptr_t>(b.memory + at);
    entry.len = static_cast<unsigned>(b.end(block) - at);
    entry.off = b.offset + at;
    entry.user_data = block;
    submissions_.as<unsigned>(sq.array)[place] = place;
    tail.fetch_add(1, std::memory_order_release);
  }

  // Hands the entries over and waits for one at least. `added` becomes how many were not taken.
  int enter(unsigned& added) const {
    while (true) {
      const long taken =
          syscall(__NR_io_uring_enter, file_, added, 1U, IORING_ENTER_GETEVENTS, nullptr, 0);
      if (taken >= 0) {
        added -= std::min(added, static_cast<unsigned>(taken));
        if (added == 0) {
          return 0;
        }
      } else if (errno != EINTR && errno != EAGAIN && errno != EBUSY) {
        return errno;
      }
    }
  }

  // The last entries, which the kernel has not seen.
  unsigned take_back(unsigned added) const {
    const std::atomic_ref<unsigned> tail(*submissions_.as<unsigned>(parameters_.sq_off.tail));
    tail.fetch_sub(added, std::memory_order_release);
    return added;
  }

  unsigned reap(const Blocks& blocks, std::vector<std::size_t>& at, std::vector<std::size_t>& again,
                int& failure) {
    const io_cqring_offsets& cq = parameters_.cq_off;
    const std::atomic_ref<unsigned> head(*completions_.as<unsigned>(cq.head));
    const std::atomic_ref<unsigned> tail(*completions_.as<unsigned>(cq.tail));
    unsigned count = 0;
    unsigned place = head.load(std::memory_order_relaxed);
    for (; place != tail.load(std::memory_order_acquire); ++place, ++count) {
      const io_uring_cqe& done =
          completions_.as<io_uring_cqe>(cq.cqes)[place & *completions_.as<unsigned>(cq.ring_mask)];
      const auto block = static_cast<std::size_t>(done.user_data);
      if (done.res == -EINTR || done.res == -EAGAIN) {
        again.push_back(block);
      } else if (done.res <= 0) {
        failure = failure != 0 ? failure : done.res < 0 ? -done.res : EIO;
      } else if (at[block] += static_cast<std::size_t>(done.res); at[block] < blocks.end(block)) {
        again.push_back(block);
      }
    }
    head.store(place, std::memory_order_release);
    return count;
  }

  int file_ = -1;
  unsigned depth_ = 0;
  io_uring_params parameters_{};
  Mapping submissions_, completions_, entries_;
};

BlockIo::BlockIo(const BlockIoOptions& options) : options_(options) {
  check(options.block_bytes >= kDirectAlignment && options.block_bytes % kDirectAlignment == 0,
        "blocks of files must be multiples of ", kDirectAlignment, " bytes, not ",
        options.block_bytes);
  if (options.use_uring) {
    method_ = Ring::open(options.queue_depth);
  }
  if (!method_) {
    method_ = std::make_unique<Threads>(options.threads);
  }
}

BlockIo::~BlockIo() = default;

const char* BlockIo::method() const { return method_->name(); }

void BlockIo::transfer(ScratchFile& file, Direction direction, std::uint64_t offset, void* memory,
                       std::size_t bytes) {
  const Blocks blocks{file.descriptor(),          direction, offset,
                      static_cast<char*>(memory), bytes,     options_.block_bytes};
  int status = method_->run(blocks);
  if (status == EINVAL && file.direct()) {
    file.leave_direct();
    status = method_->run(blocks);
  }
  check(status == 0, "offloaded state in ", file.folder(), " cannot be ",
        direction == Direction::read ? "read: " : "written: ", std::strerror(status),
        "; the run needs it and ends, and the last checkpoint is intact");
}

}  // namespace bloomery
