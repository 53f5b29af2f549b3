"""How the tests of graphs capture one."""

import torch


def captured(device, work, graph=None, pool=None):
    """A graph of work() on a stream of its own, and what work returned."""
    graph = torch.accelerator.Graph(pool=pool) if graph is None else graph
    stream = torch.Stream(device)
    stream.wait_stream(torch.accelerator.current_stream())
    with stream, graph:
        result = work()
    torch.accelerator.current_stream().wait_stream(stream)
    return graph, result
