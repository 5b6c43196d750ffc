// A struct by value, its array indexed at run time; one returned from a function; its address passed on.
struct Item {
  float scale;
  int shift;
  char tag;
  double weight;
};
struct Table {
  Item items[5];
  const float* x;
  short small[7];
};
struct Pair {
  float sum;
  long long product;
};

__device__ __noinline__ Pair combine(Item item, float x, const short* small, int at) {
  Pair p;
  p.sum = x * item.scale + static_cast<float>(item.weight);
  p.product = static_cast<long long>(small[at]) * item.shift - item.tag;
  return p;
}

extern "C" __global__ void structs(Table t, float* sums, long long* products, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Item item = t.items[i % 5];
  item.shift += i & 1;
  const Pair p = combine(item, t.x[i], t.small, i % 7);
  sums[i] = p.sum;
  products[i] = p.product;
}
