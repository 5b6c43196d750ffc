// Variables with initial values: constants, arrays in global memory, pointers to other variables and to text; arrays of a
// thread's own.
struct Entry {
  const char* name;
  const int* values;
  int count;
};

__constant__ float weights[8] = {0.5f, -1.25f, 3.f, 1e-3f, 7.f};
__constant__ double precise = 3.141592653589793;
__device__ int primes[6] = {2, 3, 5, 7, 11, 13};
__device__ int squares[4] = {1, 4, 9, 16};
__device__ Entry entries[2] = {{"primes", primes, 6}, {"squares", squares + 1, 3}};
__device__ unsigned calls;
__device__ short untouched[3];

extern "C" __global__ void lookup(const int* which, float* out, char* letters) {
  const int i = threadIdx.x;
  const Entry& e = entries[which[i] & 1];
  int sum = 0;
  for (int k = 0; k < e.count; ++k) sum += e.values[k];
  out[i] = static_cast<float>(sum) * weights[i & 7] + static_cast<float>(precise) + untouched[i % 3];
  letters[i] = e.name[i % 6];
  atomicAdd(&calls, 1u);
}
extern "C" __global__ void count_calls(unsigned* out) { *out = calls; }

/// Insertion sort of a thread's own 16 numbers, then the element that `pick` asks for.
extern "C" __global__ void own_array(const int* x, const int* pick, int* out) {
  int v[16];
  for (int i = 0; i < 16; ++i) v[i] = x[threadIdx.x * 16 + i];
  for (int i = 1; i < 16; ++i) {
    const int key = v[i];
    int j = i - 1;
    for (; j >= 0 && v[j] > key; --j) v[j + 1] = v[j];
    v[j + 1] = key;
  }
  out[threadIdx.x] = v[pick[threadIdx.x] & 15];
}
