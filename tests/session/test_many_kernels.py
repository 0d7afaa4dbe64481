from kernels import Kernel, kernels


def work(pipe, x):
    pipe.send(x + 1)


def test_x():
    print(__name__)
    with kernels(Kernel(work, 3)) as (k,):
        assert k.hear() == 4
        assert k.end() == 0
