#include "comm/nccl/nccl_handle.h"

#include <chrono>
#include <cstring>

namespace bloomery {
namespace {

// A thread that is inside NCCL for so long hangs there, and keeps the communicator.
constexpr double kPatience = 5;

// Waits a little longer each time.
void pause(int turn) {
  if (turn < 100) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 1000 ? 20 : 500));
  }
}

}  // namespace

NcclHandle::NcclHandle(std::shared_ptr<const NcclLibrary> nccl, HostGroup& host,
                       double explanation_seconds)
    : nccl_(std::move(nccl)),
      host_(host),
      world_(host.world()),
      explanation_seconds_(explanation_seconds) {
  try {
    connect();
  } catch (...) {
    if (world_ != nullptr) {
      world_->forget(reaction_);
    }
    if (ending_.joinable()) {
      ending_.join();
    }
    abort();
    throw;
  }
}

void NcclHandle::connect() {
  NcclLibrary::Id id{};
  if (host_.rank() == 0) {
    nccl_->check(nccl_->make_id(&id), "ncclGetUniqueId");
  }
  const std::string told =
      host_.broadcast("NCCL id", std::string(id.bytes.data(), id.bytes.size()), 0);
  std::memcpy(id.bytes.data(), told.data(), id.bytes.size());
  std::unique_lock lock(mutex_);
  NcclLibrary::Config config;
  const int result = nccl_->init(&comm_, host_.size(), id, host_.rank(), &config);
  lock.unlock();
  if (world_ != nullptr) {
    reaction_ = world_->when_failed([this] { end_soon(); });
  }
  lock.lock();
  wait_until_taken(lock, result, "ncclCommInitRankConfig");
  lock.unlock();
  if (world_ != nullptr) {
    check_ = world_->add_check([this] {
      if (const std::string error = asynchronous_error(); !error.empty()) {
        host_.abort(error);
      }
    });
  }
}

NcclHandle::~NcclHandle() {
  if (world_ != nullptr) {
    world_->remove_check(check_);
    world_->forget(reaction_);
  }
  if (ending_.joinable()) {
    ending_.join();
  }
  if (std::uncaught_exceptions() > exceptions_ || (world_ != nullptr && world_->failed())) {
    abort();
  } else if (comm_ != nullptr) {
    nccl_->destroy(comm_);
  }
}

void NcclHandle::call(const char* name, const std::function<int(NcclLibrary::Comm)>& work) {
  std::unique_lock lock(mutex_);
  check_usable();
  wait_until_taken(lock, work(comm_), name, world_ != nullptr ? world_->timeout_seconds() : 0);
}

void NcclHandle::check_usable() const {
  if (world_ != nullptr) {
    world_->check_failed();
  }
  check(comm_ != nullptr, "the communicator of NCCL has ended");
}

// Whoever ends the communicator has its turn between two looks. NCCL itself waits without end for a
// rank that does not come; 0 seconds: so do we, until the world fails.
void NcclHandle::wait_until_taken(std::unique_lock<std::mutex>& lock, int result, const char* name,
                                  double seconds) {
  const Deadline end = seconds_from_now(seconds);
  for (int turn = 0; result == NcclLibrary::kInProgress; ++turn) {
    lock.unlock();
    pause(turn);
    if (seconds > 0 && seconds_until(end) == 0) {
      host_.abort(concat("it waited ", seconds, " s until NCCL had taken ", name,
                         ": all ranks of a group must make the same calls"));
    }
    lock.lock();
    check_usable();
    nccl_->check(nccl_->async_error(comm_, &result), "ncclCommGetAsyncError");
  }
  nccl_->check(result, name);
}

void NcclHandle::end_soon() noexcept {
  try {
    ending_ = std::thread([this] { abort(); });
  } catch (const std::exception&) {  // no thread can be had
    abort();
  }
}

void NcclHandle::abort() noexcept {
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (const Deadline end = seconds_from_now(kPatience); !lock && seconds_until(end) > 0;) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    static_cast<void>(lock.try_lock());
  }
  if (lock && comm_ != nullptr) {
    nccl_->abort(std::exchange(comm_, nullptr));
  }
}

// What NCCL found while nobody waited, once nobody else has explained it. A look that comes in the
// way of a call is left out.
std::string NcclHandle::asynchronous_error() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  int result = 0;
  if (!lock || comm_ == nullptr || nccl_->async_error(comm_, &result) != 0 ||
      !NcclLibrary::is_error(result)) {
    return {};
  }
  if (!error_is_due_) {
    error_is_due_ = seconds_from_now(explanation_seconds_);
  }
  return seconds_until(*error_is_due_) > 0 ? std::string()
                                           : concat("NCCL reports: ", nccl_->error_text(result),
                                                    "; NCCL_DEBUG=WARN shows details");
}

}  // namespace bloomery
