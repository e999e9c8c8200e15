#include "ops/matmul/onednn.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/library.h"
#include "tensor/tensor.h"

namespace bloomery {
namespace {

// Numbers of the C interface, the same in versions 2 and 3.
constexpr int kCpuEngine = 1, kInOrderStream = 1, kUserScratchpad = 1;
constexpr int kQueryImplementationName = 8, kQueryScratchpad = 136;
constexpr int kFp32 = 3, kBf16 = 2;
constexpr int kSource = 1, kDestination = 17, kWeights = 33, kScratchpad = 80;
constexpr unsigned kSequentialRuntime = 1, kOpenMpRuntime = 2;

using Dimensions = std::array<std::int64_t, 12>;

struct Version {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};
struct Argument {
  int index;
  void* memory;
};
// Holds the structs by which version 2 describes memory (696 bytes) and products (2800 bytes).
struct alignas(16) Opaque {
  std::array<unsigned char, 8192> bytes;
};

template <class Function>
bool resolve(const Library& library, const char* name, Function*& function) {
  function = library.function<Function>(name);
  return function != nullptr;
}

// Lets go of a library object at the end of the scope.
class Handle {
 public:
  explicit Handle(int (*destroy)(void*)) : destroy_(destroy) {}
  ~Handle() {
    if (object != nullptr) {
      destroy_(object);
    }
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void* release() { return std::exchange(object, nullptr); }

  void* object = nullptr;

 private:
  int (*destroy_)(void*);
};

// A matrix description: a struct in version 2, an object in version 3.
class Description {
 public:
  template <class Api>
  Description(const Api& api, std::int64_t rows, std::int64_t columns, std::int64_t ld,
              bool transposed, int dtype)
      : object_(api.version3 ? api.description_destroy3 : nullptr) {
    const Dimensions extents{rows, columns};
    const Dimensions strides{transposed ? 1 : ld, transposed ? ld : 1};
    valid_ = (api.version3
                  ? api.describe_memory3(&object_.object, 2, extents.data(), dtype, strides.data())
                  : api.describe_memory2(&struct_, 2, extents.data(), dtype, strides.data())) == 0;
  }
  bool valid() const { return valid_; }
  const void* get() const {
    return object_.object != nullptr ? object_.object : static_cast<const void*>(&struct_);
  }

 private:
  Opaque struct_{};
  Handle object_;
  bool valid_ = false;
};

}  // namespace

struct OneDnn::Api {
  bool version3 = false;
  void (*set_num_threads)(int) = nullptr;  // OpenMP's, null for a sequential build

  const Version* (*version)();
  int (*engine_create)(void**, int kind, std::size_t index);
  int (*engine_destroy)(void*);
  int (*stream_create)(void**, void* engine, unsigned flags);
  int (*stream_destroy)(void*);
  int (*attributes_create)(void**);
  int (*attributes_destroy)(void*);
  int (*set_scratchpad_mode)(void* attributes, int mode);
  int (*set_post_ops)(void* attributes, const void* post_ops);
  int (*post_ops_create)(void**);
  int (*post_ops_destroy)(void*);
  int (*append_sum2)(void* post_ops, float scale);
  int (*append_sum3)(void* post_ops, float scale, std::int32_t zero_point, int dtype);
  int (*memory_create)(void**, const void* description, void* engine, void* data);
  int (*memory_destroy)(void*);
  int (*describe_memory2)(void* description, int rank, const std::int64_t* extents, int dtype,
                          const std::int64_t* strides);
  int (*describe_memory3)(void** description, int rank, const std::int64_t* extents, int dtype,
                          const std::int64_t* strides);
  int (*description_destroy3)(void*);
  std::size_t (*memory_bytes)(const void* description);
  int (*describe_matmul2)(void* description, const void* a, const void* b, const void* bias,
                          const void* d);
  int (*plan2)(void** plan, const void* description, const void* attributes, void* engine,
               const void* hint);
  int (*plan3)(void** plan, void* engine, const void* a, const void* b, const void* bias,
               const void* d, const void* attributes);
  int (*plan_destroy)(void*);
  int (*plan_query)(const void* plan, int what, int index, void* result);
  const void* (*plan_query_memory)(const void* plan, int what, int index);
  int (*primitive_create)(void**, const void* plan);
  int (*primitive_destroy)(void*);
  int (*primitive_execute)(const void* primitive, void* stream, int count, const Argument*);

  bool resolve_all(const Library& library);
  // The library must find one OpenMP thread on each thread that calls it.
  void stay_single_threaded() const {
    thread_local const bool done = [this] {
      if (set_num_threads != nullptr) {
        set_num_threads(1);
      }
      return true;
    }();
    static_cast<void>(done);
  }
};

bool OneDnn::Api::resolve_all(const Library& library) {
  if (!resolve(library, "dnnl_version", version)) {
    return false;
  }
  version3 = version()->major >= 3;
  const unsigned runtime = version()->cpu_runtime;
  if (runtime != kSequentialRuntime &&
      (runtime != kOpenMpRuntime || !resolve(library, "omp_set_num_threads", set_num_threads))) {
    return false;
  }
  const bool own =
      version3 ? resolve(library, "dnnl_post_ops_append_sum", append_sum3) &&
                     resolve(library, "dnnl_memory_desc_create_with_strides", describe_memory3) &&
                     resolve(library, "dnnl_memory_desc_destroy", description_destroy3) &&
                     resolve(library, "dnnl_matmul_primitive_desc_create", plan3)
               : resolve(library, "dnnl_post_ops_append_sum", append_sum2) &&
                     resolve(library, "dnnl_memory_desc_init_by_strides", describe_memory2) &&
                     resolve(library, "dnnl_matmul_desc_init", describe_matmul2) &&
                     resolve(library, "dnnl_primitive_desc_create", plan2);
  return own && resolve(library, "dnnl_engine_create", engine_create) &&
         resolve(library, "dnnl_engine_destroy", engine_destroy) &&
         resolve(library, "dnnl_stream_create", stream_create) &&
         resolve(library, "dnnl_stream_destroy", stream_destroy) &&
         resolve(library, "dnnl_primitive_attr_create", attributes_create) &&
         resolve(library, "dnnl_primitive_attr_destroy", attributes_destroy) &&
         resolve(library, "dnnl_primitive_attr_set_scratchpad_mode", set_scratchpad_mode) &&
         resolve(library, "dnnl_primitive_attr_set_post_ops", set_post_ops) &&
         resolve(library, "dnnl_post_ops_create", post_ops_create) &&
         resolve(library, "dnnl_post_ops_destroy", post_ops_destroy) &&
         resolve(library, "dnnl_memory_create", memory_create) &&
         resolve(library, "dnnl_memory_destroy", memory_destroy) &&
         resolve(library, "dnnl_memory_desc_get_size", memory_bytes) &&
         resolve(library, "dnnl_primitive_desc_destroy", plan_destroy) &&
         resolve(library, "dnnl_primitive_desc_query", plan_query) &&
         resolve(library, "dnnl_primitive_desc_query_md", plan_query_memory) &&
         resolve(library, "dnnl_primitive_create", primitive_create) &&
         resolve(library, "dnnl_primitive_destroy", primitive_destroy) &&
         resolve(library, "dnnl_primitive_execute", primitive_execute);
}

// A compiled product. Executing it on several threads at once is safe, since each call brings its
// own memory objects, stream and scratchpad.
struct OneDnn::Primitive {
  Primitive(const Api& functions, const ProductShape& s)
      : api(functions),
        a(api, s.m, s.k, s.lda, s.transpose_a, s.input == DType::bf16 ? kBf16 : kFp32),
        b(api, s.k, s.n, s.ldb, s.transpose_b, s.input == DType::bf16 ? kBf16 : kFp32),
        c(api, s.m, s.n, s.ldc, false, s.output == DType::bf16 ? kBf16 : kFp32),
        plan(api.plan_destroy),
        primitive(api.primitive_destroy) {}

  const Api& api;
  Description a, b, c;
  Handle plan, primitive;
  const void* scratchpad = nullptr;  // its description, owned by the plan
};

std::unique_ptr<OneDnn> OneDnn::load() {
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"}) {
    const Library library = Library::open({name});
    if (!library) {
      continue;
    }
    auto api = std::make_unique<Api>();
    if (api->resolve_all(library)) {
      std::unique_ptr<OneDnn> result(new OneDnn(std::move(api)));
      if (result->engine_ != nullptr) {
        return result;
      }
    }
  }
  return nullptr;
}

OneDnn::OneDnn(std::unique_ptr<Api> api) : api_(std::move(api)) {
  api_->stay_single_threaded();
  if (api_->engine_create(&engine_, kCpuEngine, 0) != 0) {
    engine_ = nullptr;
  }
}

std::string OneDnn::version() const {
  const Version& v = *api_->version();
  return concat(v.major, '.', v.minor, '.', v.patch);
}

OneDnn::~OneDnn() {
  primitives_.clear();
  if (engine_ != nullptr) {
    api_->engine_destroy(engine_);
  }
}

std::unique_ptr<OneDnn::Primitive> OneDnn::make_primitive(const ProductShape& shape) const {
  auto made = std::make_unique<Primitive>(*api_, shape);
  Handle attributes(api_->attributes_destroy), sum(api_->post_ops_destroy);
  if (!made->a.valid() || !made->b.valid() || !made->c.valid() ||
      api_->attributes_create(&attributes.object) != 0 ||
      api_->set_scratchpad_mode(attributes.object, kUserScratchpad) != 0) {
    return nullptr;
  }
  if (shape.add && (api_->post_ops_create(&sum.object) != 0 ||
                    (api_->version3 ? api_->append_sum3(sum.object, 1.0f, 0, 0)
                                    : api_->append_sum2(sum.object, 1.0f)) != 0 ||
                    api_->set_post_ops(attributes.object, sum.object) != 0)) {
    return nullptr;
  }
  Opaque matmul{};
  const int status =
      api_->version3 ? api_->plan3(&made->plan.object, engine_, made->a.get(), made->b.get(),
                                   nullptr, made->c.get(), attributes.object)
      : api_->describe_matmul2(&matmul, made->a.get(), made->b.get(), nullptr, made->c.get()) != 0
          ? -1
          : api_->plan2(&made->plan.object, &matmul, attributes.object, engine_, nullptr);
  const char* name = nullptr;
  if (status != 0 || api_->plan_query(made->plan.object, kQueryImplementationName, 0, &name) != 0 ||
      std::string_view(name).starts_with("ref") ||
      api_->primitive_create(&made->primitive.object, made->plan.object) != 0) {
    return nullptr;
  }
  made->scratchpad = api_->plan_query_memory(made->plan.object, kQueryScratchpad, 0);
  return made;
}

const OneDnn::Primitive* OneDnn::primitive(const ProductShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto found = primitives_.find(shape);
  return found != primitives_.end()
             ? found->second.get()
             : primitives_.emplace(shape, make_primitive(shape)).first->second.get();
}

bool OneDnn::multiply(Stream& stream, const ProductShape& shape, const void* a, const void* b,
                      void* c) {
  api_->stay_single_threaded();
  const Primitive* made = primitive(shape);
  if (made == nullptr) {
    return false;
  }
  const std::size_t bytes = made->scratchpad != nullptr ? api_->memory_bytes(made->scratchpad) : 0;
  const Tensor scratch = Tensor::empty(
      stream, DType::uint8, {static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1))});
  Handle queue(api_->stream_destroy), memory_a(api_->memory_destroy),
      memory_b(api_->memory_destroy), memory_c(api_->memory_destroy),
      memory_scratch(api_->memory_destroy);
  int status = api_->stream_create(&queue.object, engine_, kInOrderStream);
  const auto wrap = [&](Handle& memory, const void* description, const void* data) {
    if (status == 0) {
      status = api_->memory_create(&memory.object, description, engine_, const_cast<void*>(data));
    }
  };
  wrap(memory_a, made->a.get(), a);
  wrap(memory_b, made->b.get(), b);
  wrap(memory_c, made->c.get(), c);
  if (bytes > 0) {
    wrap(memory_scratch, made->scratchpad, scratch.data());
  }
  const std::array<Argument, 4> arguments{
      Argument{kSource, memory_a.object}, Argument{kWeights, memory_b.object},
      Argument{kDestination, memory_c.object}, Argument{kScratchpad, memory_scratch.object}};
  if (status == 0) {
    status = api_->primitive_execute(made->primitive.object, queue.object, bytes > 0 ? 4 : 3,
                                     arguments.data());
  }
  check(status == 0, "oneDNN: a ", shape.m, "x", shape.n, "x", shape.k, " ", shape.input,
        " product failed with status ", status);
  return true;
}

}  // namespace bloomery
